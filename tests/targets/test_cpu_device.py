from __future__ import annotations

import os

import pytest

from kernelforge_lab import targets
from kernelforge_lab.targets import cpu_device


def test_describes_this_machine() -> None:
    device = targets.get("cpu", threads=2).device()
    assert device.threads == 2
    assert "2 threads" in device.name
    assert device.llc_bytes >= device.l2_bytes >= device.l1_bytes
    assert device == targets.get("cpu", threads=2).device()


def test_other_thread_counts_are_other_devices() -> None:
    one, two = (targets.get("cpu", threads=n).device() for n in (1, 2))
    assert one.fingerprint != two.fingerprint
    assert "1 thread)" in one.name


def test_threads_follow_openmps_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    assert cpu_device.default_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert cpu_device.default_threads() >= 1


def test_threads_stay_within_a_containers_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    monkeypatch.setattr(cpu_device, "_cgroup_quota", lambda: 4)
    assert cpu_device.default_threads() == 4
    monkeypatch.setattr(cpu_device, "_cgroup_quota", lambda: 0)
    assert cpu_device.default_threads() == 64
