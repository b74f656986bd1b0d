"""One judge per GPU: work goes to the one that has least to do."""

from __future__ import annotations

from typing import Any

import pytest

from kernelforge_lab.judge import several
from kernelforge_lab.judge.several import SeveralJudges, local_judge, visible_gpus
from tests.search.fakes import FakePool, region

from .test_farm import job


def test_work_goes_to_the_idlest_and_every_judge_is_closed() -> None:
    pools = [FakePool(hold=True) for _ in range(3)]
    judges = SeveralJudges(pools)
    answers = [judges.submit(job(str(number))) for number in range(6)]
    assert [len(pool.jobs) for pool in pools] == [2, 2, 2]
    pools[1].release()
    answers += [judges.submit(job("more")), judges.submit(job("most"))]
    assert [len(pool.jobs) for pool in pools] == [2, 4, 2]
    assert judges.prepare(region(512)).result(5).best == "compiled"
    judges.close()
    assert all(pool.closed for pool in pools)


class FakeCuda:
    names = ("H200", "H200", "T4", "H200")

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return len(self.names)

    def current_device(self) -> int:
        return 1

    def get_device_name(self, number: int) -> str:
        return self.names[number]


@pytest.mark.parametrize("given, found", [("", ["1", "0", "3"]), ("4,5,6,7", ["5", "4", "7"])])
def test_gpus_like_the_current_one_are_used_it_first(
    monkeypatch: pytest.MonkeyPatch, given: str, found: list[str]
) -> None:
    monkeypatch.setattr("torch.cuda", FakeCuda())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert visible_gpus() == found
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(several, "JudgePool", lambda target, **more: asked.append(more))
    local_judge("cuda")
    assert [more["environment"]["CUDA_VISIBLE_DEVICES"] for more in asked] == found
    local_judge("cpu")
    assert asked[-1] == {}
