"""The operator tables say something true about torch, and each operator is in one of them only."""

from __future__ import annotations

import pytest
import torch

from kernelforge_lab.capture.ops import FUSIBLE, HEAVY, RANDOM, VIEWS, Kind, is_known_heavy, kind_of


@pytest.mark.parametrize("target", [*FUSIBLE, *VIEWS])
def test_names_an_operator_that_torch_has(target: str) -> None:
    namespace, packet, overload = target.split(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    assert not operator._schema.is_mutable
    assert str(operator) == target


def test_the_fusible_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        FUSIBLE["aten.mm.default"] = FUSIBLE["aten.add.Tensor"]  # type: ignore[index]


def test_tables_do_not_overlap() -> None:
    fusible = {target.split(".")[1] for target in FUSIBLE}
    views = {target.split(".")[1] for target in VIEWS}
    assert not fusible & views
    assert not (fusible | views) & (HEAVY | RANDOM)
    assert not HEAVY & RANDOM


@pytest.mark.parametrize(
    "target, kind",
    [
        ("aten.add.Tensor", Kind.FUSIBLE),
        ("aten.transpose.int", Kind.VIEW),
        ("aten.mm.default", Kind.HEAVY),
        ("aten.bernoulli.p", Kind.RANDOM),
        ("somebody.special_op.default", Kind.HEAVY),
    ],
)
def test_kind_of(target: str, kind: Kind) -> None:
    assert kind_of(target) is kind


def test_an_unknown_operator_is_heavy_without_being_known() -> None:
    assert not is_known_heavy("somebody.special_op.default")
    assert is_known_heavy("aten._scaled_dot_product_flash_attention_for_cpu.default")
