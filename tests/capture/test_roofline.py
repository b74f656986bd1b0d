"""Limits of the device, and what they say about a region."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelforge_lab.capture import roofline
from kernelforge_lab.capture.workload import Roofs, region_ceiling
from kernelforge_lab.kernels.region import Region

ROOFS = Roofs(10.0, 100.0, 1.0, ((1000, 40.0), (100_000, 20.0), (10_000_000, 10.0)))

ADD = Region.parse(
    "region(in0: f32[1000], in1: f32[1000]) {\n  t0 = aten.add.Tensor(in0, in1) : f32[1000]\n  return t0\n}"
)
HALF = Region.parse(
    "region(in0: f32[1000]) {\n"
    "  t0 = aten.slice.Tensor(in0, 0, 0, 500) : f32[500]\n"
    "  t1 = aten.exp.default(t0) : f32[500]\n"
    "  return t1\n}"
)
EXPANDED = Region.parse(
    "region(in0: f32[100,10;0,1]) {\n  t0 = aten.exp.default(in0) : f32[100,10]\n  return t0\n}"
)


@pytest.mark.parametrize("region, bytes_", [(ADD, 12_000), (HALF, 4_000), (EXPANDED, 4_040)])
def test_bytes_are_those_really_read_and_written(region: Region, bytes_: int) -> None:
    assert roofline.bytes_moved(region) == bytes_


def test_a_small_working_set_gets_the_bandwidth_of_the_cache_it_fits() -> None:
    assert [ROOFS.bandwidth_at(n) for n in (10, 1000, 99_999, 100_000, 10**9)] == [40, 40, 40, 20, 10]
    assert roofline.floor_us(ADD, ROOFS) == pytest.approx(12_000 / 40e3)


def test_flops_bound_a_region_that_moves_little() -> None:
    slow = Roofs(1e6, 0.1, 1.0)
    assert roofline.floor_us(ADD, slow) == pytest.approx(1000 / (0.1 * 1e3))


@pytest.mark.parametrize(
    "time_us, floor_us, expected",
    [(100.0, 9.0, 10.0), (100.0, 0.0, 50.0), (1.0, 9.0, 1.0), (0.0, 0.0, 1.0)],
)
def test_a_regions_ceiling_never_beats_one_call(time_us: float, floor_us: float, expected: float) -> None:
    assert region_ceiling(time_us, floor_us, call_us=2.0) == pytest.approx(expected)


def test_limits_are_measured_once_and_survive_a_broken_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path))
    measured: list[int] = []
    monkeypatch.setattr(roofline, "_measure", lambda: measured.append(1) or ROOFS)
    monkeypatch.setattr(roofline, "_triad_gbps", lambda size, torch: ROOFS.bandwidth_gbps)
    assert roofline.measure(2) == roofline.measure(2) == ROOFS and len(measured) == 1
    (file,) = tmp_path.glob("roofs-*.json")
    file.write_text("{")
    assert roofline.measure(2) == ROOFS and len(measured) == 2


def test_real_limits_are_plausible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "_REPEAT_S", 0.01)
    roofs = roofline._measure()
    assert 0.1 < roofs.bandwidth_gbps < 1e5 and 0.1 < roofs.gflops < 1e6 and 0 < roofs.call_us < 1e4
    speeds = [gbps for _, gbps in roofs.curve]
    assert speeds == sorted(speeds, reverse=True)
    assert Roofs.from_json(roofs.as_json()) == roofs


def test_limits_taken_on_a_busy_machine_do_not_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Too low a limit would call stock unbeatable, and that in every later run."""
    monkeypatch.setenv("KERNELFORGE_CACHE", str(tmp_path))
    found = [ROOFS, replace(ROOFS, bandwidth_gbps=40.0)]
    monkeypatch.setattr(roofline, "_measure", lambda: found.pop(0))
    monkeypatch.setattr(roofline, "_triad_gbps", lambda size, torch: 12.0)
    assert roofline.measure(2).bandwidth_gbps == 10.0
    assert roofline.measure(2).bandwidth_gbps == 10.0  # 12 is within what a measurement varies by
    monkeypatch.setattr(roofline, "_triad_gbps", lambda size, torch: 40.0)
    assert roofline.measure(2).bandwidth_gbps == 40.0
    (kept,) = tmp_path.glob("roofs-*.json")
    assert json.loads(kept.read_text())["bandwidth_gbps"] == 40.0
