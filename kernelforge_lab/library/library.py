"""Proven kernels in the run store, by region, target and device."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ..exc import ForgeError, StoreError
from ..judge.verdict import Verdict
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from ..search.memory import LIBRARY, Known
from ..store import Store
from ..store.database import errors
from ..store.models import ProofRow

# Each costs a compilation and a proof; the third best of a region has rarely become the best again.
_MOST_KNOWN: Final = 2


@dataclass(frozen=True)
class Proof:
    """A kernel with the verdict of the fresh process it was proven in, and where that was.

    ``device`` is the device's fingerprint; ``text`` the region in its canonical form; ``found_at`` Unix
    seconds. The verdict is a claim to whoever did not see it: every use proves the kernel again.
    """

    region: str
    text: str
    target: str
    device: str
    device_name: str
    source: str
    params: dict[str, int]
    strategy: str
    idea: str
    verdict: dict[str, Any]
    run: str
    found_at: float

    @property
    def kernel(self) -> Kernel:
        params = tuple(sorted(self.params.items()))
        return Kernel(self.source, self.region, self.target, params, LIBRARY, self.strategy, self.idea)

    @property
    def speedup(self) -> float:
        return float((self.verdict.get("timing") or {}).get("speedup", 0.0))


class Library:
    """The proofs of a store. Methods raise StoreError unless they say otherwise."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, proof: Proof) -> None:
        """Keep a proof; a later one of the same kernel on the same device replaces it."""
        row = ProofRow(
            region=proof.region,
            target=proof.target,
            device=proof.device,
            kernel=proof.kernel.hash,
            speedup=proof.speedup,
            found_at=proof.found_at,
            body=asdict(proof),
        )
        with errors("cannot write to the library"), Session(self._store.engine) as session:
            session.merge(row)
            session.commit()

    def proofs(self, region: str = "", target: str = "") -> list[Proof]:
        """All, or those of a region or target; the fastest first."""
        query = select(ProofRow.body).order_by(ProofRow.speedup.desc(), ProofRow.found_at.desc())
        if region:
            query = query.where(ProofRow.region == region)
        if target:
            query = query.where(ProofRow.target == target)
        with errors("cannot read the library"), Session(self._store.engine) as session:
            return [Proof(**body) for body in session.scalars(query)]

    def remove(self, kernel: Kernel) -> None:
        """Take a kernel out, on every device."""
        gone = delete(ProofRow).where(ProofRow.region == kernel.region, ProofRow.kernel == kernel.hash)
        with errors("cannot write to the library"), Session(self._store.engine) as session:
            session.execute(gone)
            session.commit()


class RunMemory:
    """The library as one run on one device sees it (``search.memory.Memory``); never raises."""

    def __init__(self, library: Library, target: str, device: str, device_name: str, run: str) -> None:
        self._library, self._target, self._run = library, target, run
        self._device, self._device_name = device, device_name
        self._known: dict[str, list[Known]] = {}

    def known(self, region: Region) -> list[Known]:
        if region.hash not in self._known:
            try:
                found = self._library.proofs(region.hash, self._target)
            except StoreError:
                found = []
            # Equal hashes of different regions are one in 2^48, but the text is at hand.
            found = [proof for proof in found if proof.text == region.text]
            found.sort(key=lambda proof: (proof.device != self._device, -proof.speedup))
            distinct = {proof.kernel.hash: proof for proof in reversed(found)}
            chosen = [proof for proof in found if distinct[proof.kernel.hash] is proof][:_MOST_KNOWN]
            self._known[region.hash] = [self._told(proof) for proof in chosen]
        return self._known[region.hash]

    def remember(self, region: Region, kernel: Kernel, verdict: Verdict) -> None:
        proof = Proof(
            region.hash,
            region.text,
            self._target,
            self._device,
            self._device_name,
            kernel.source,
            dict(kernel.params),
            kernel.strategy,
            kernel.idea,
            verdict.as_json(),
            self._run,
            time.time(),
        )
        try:
            self._library.add(proof)
        except StoreError:
            return  # the run's own log says that the store fails

    def forget(self, region: Region, kernel: Kernel) -> None:
        self._known.pop(region.hash, None)
        try:
            self._library.remove(kernel)
        except StoreError:
            return

    def _told(self, proof: Proof) -> Known:
        is_of_here = proof.device == self._device
        where = "" if is_of_here else f" on {proof.device_name}"
        return Known(proof.kernel, is_of_here, f"run {proof.run}{where}")


def open_library(target: str, run: str) -> RunMemory | None:
    """The default store's library for this machine's device; None when either cannot be had."""
    from .. import targets

    try:
        device = targets.get(target).device()
        return RunMemory(Library(Store()), target, device.fingerprint, device.name, run)
    except ForgeError:
        return None
