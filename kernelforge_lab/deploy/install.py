"""From winners to what a split graph calls for each region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .. import targets
from ..capture.graph import Boxed, Implementation, SplitGraph
from ..exc import ForgeError, GuardError
from ..judge.certificate import Certificate, certificate_of
from ..kernels.kernel import Kernel
from ..kernels.region import Region
from .compiled import CompiledRegion
from .counts import Counts
from .guard import Guard, wants_aligned
from .winner import COMPILED, Winner

_NO_WINNER: Final = "no kernel was forged for these inputs (another shape, dtype or autocast)"
_SEARCH: Final = "Forge the model on such inputs too, or apply without strict."


@dataclass
class Installer:
    """Gives each region its winner's guarded callable; None (stock) where there is none or it won't load.

    ``calls`` counts graphs run; one in which no winner has a place is a counted miss of each of its calls.

    A kernel needs the certificate of its verdict, issued on this device with these versions.
    """

    winners: Mapping[str, Winner]
    target: str = "cpu"
    shadow: int = 2
    strict: bool = False
    counts: Counts = field(default_factory=Counts)
    installed: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    calls: int = 0
    guards: list[Guard] = field(default_factory=list)

    def build(self, split: SplitGraph) -> Boxed:
        """The graph with winners in place."""
        served = any(name in self.winners for name in split.regions)
        return self._counting(split.build(self.implement), served or not split.regions)

    def _counting(self, graph: Boxed, served: bool) -> Boxed:
        def run(args: list[Any]) -> Any:
            self.calls += 1
            if not served:
                self.counts.miss(_NO_WINNER)
                if self.strict:
                    raise GuardError(f"The call fell back to PyTorch: {_NO_WINNER}.", _SEARCH)
            return graph(args)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    def shadow_again(self, calls: int) -> None:
        """Every live kernel's next ``calls`` calls are compared with PyTorch again."""
        for guard in self.guards:
            guard.shadow_again(calls)

    def implement(self, region: Region) -> Implementation | None:
        winner = self.winners.get(region.hash)
        if winner is None:
            return None
        if winner.kernel == COMPILED:
            self.installed.add(region.hash)
            return CompiledRegion(region, self.counts).call
        if not isinstance(winner.kernel, Kernel):
            return None
        try:
            guard = self._guard(region, winner.kernel, certificate_of(winner.verdict))
        except ForgeError as error:
            self.counts.miss(f"not built: {error.message}")
            self.notes.append(f"region {region.hash} stays on PyTorch: {error}")
            if self.strict:
                raise
            return None
        self.installed.add(region.hash)
        self.guards.append(guard)
        return guard.call

    def _guard(self, region: Region, kernel: Kernel, certificate: Certificate | None) -> Guard:
        """Raises GuardError without a certificate that holds on this machine."""
        # Built as it was judged: the number of threads is part of a cpu kernel's code.
        target = targets.get(self.target, threads=certificate.threads if certificate else None)
        built = target.build(kernel, region)
        problem = (
            certificate.objection(region, kernel, built, target.device()) if certificate else "it has none"
        )
        if problem:
            raise GuardError(
                f"The kernel of region {region.hash} has no certificate that holds here: {problem}.",
                "Judge it on this machine: kernelforge verify RUN, or search again.",
            )
        if self.target == "cuda":
            from .cuda_stream import CudaLaunch

            launch, exclusive = CudaLaunch(kernel, region).call, False
        else:
            launch = target.load(built).bind_names((*region.input_names, *region.output_names))
            exclusive = bool(built.plan.workspaces)
        return Guard(
            region,
            launch,
            self.counts,
            shadow=self.shadow,
            strict=self.strict,
            # A vector access on a GPU is a fault when it is not aligned, which spoils the whole context.
            aligned=self.target == "cuda" or wants_aligned(kernel.source),
            exclusive=exclusive,
            device=self.target,
        )
