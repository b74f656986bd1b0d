"""What a region must give: its own graph in float64, and how far eager is from that. Needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..kernels.execution import compile_region, torch_dtype
from ..kernels.region import Region
from ..kernels.spec import TensorSpec
from ..kernels.stats import InputStats
from . import tolerance
from .inputs import FAMILIES, Family, family, full_stats, make_storages, nudged, view_storage
from .layout import storage_bytes
from .tolerance import Bound, Error

if TYPE_CHECKING:
    import torch

# Half a unit in the last place of float32, in which any sensible kernel computes.
_PERTURBATION: Final = {"float64": 2.0**-53}
_PERTURBATION_DEFAULT: Final = 2.0**-24
_FEW: Final = 256
_DRAWS_OF_FEW: Final = 4
NUDGED: Final = "changed in place"


@dataclass(frozen=True)
class Case:
    """One set of inputs with what must come out.

    ``expected`` is float64 for floating outputs, else eager's exact values (``oracle_exact`` then holds the
    oracle's, which may differ where a comparison is nearly a tie). ``eager`` is kept only where it is not
    finite and the oracle is. ``skipped`` says why the case proves nothing.
    """

    name: str
    seed: int
    special: bool
    storages: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]
    exact: tuple[torch.Tensor | None, ...]
    eager: tuple[torch.Tensor | None, ...]
    bounds: tuple[Bound | None, ...]
    skipped: str = ""

    @property
    def size_bytes(self) -> int:
        kept = [*self.storages, *self.expected, *self.exact, *self.eager]
        return sum(t.numel() * t.element_size() for t in kept if t is not None)

    @property
    def label(self) -> str:
        return f"inputs '{self.name}' (seed {self.seed})"


class Oracle:
    """Makes cases for one region and keeps them while ``budget_bytes`` allows."""

    def __init__(
        self,
        region: Region,
        stats: Sequence[InputStats],
        seed: int,
        budget_bytes: int,
        device: str = "cpu",
    ) -> None:
        self.region = region
        self.stats = full_stats(region, stats)
        self.seed = seed
        self.eager = compile_region(region)
        self._exact = compile_region(region, float64=True)
        self._budget_bytes = budget_bytes
        self._device = device
        self._kept: dict[tuple[str, int], Case] = {}
        self._sum_length = tolerance.longest_sum(region)
        self._typical: tuple[float, ...] | None = None

    def case(self, name: str, seed_offset: int = 0) -> Case:
        """The case of a family (or of ``NUDGED``) for this oracle's seed plus an offset."""
        key = (name, self.seed + seed_offset)
        found = self._kept.get(key)
        if found is None:
            found = self._make(*key)
            if found.size_bytes + sum(c.size_bytes for c in self._kept.values()) <= self._budget_bytes:
                self._kept[key] = found
        return found

    def quick_names(self) -> list[str]:
        return [f.name for f in self._families() if f.quick]

    def full_names(self) -> list[str]:
        return [f.name for f in self._families()]

    def _families(self) -> list[Family]:
        has_floats = any(spec.is_floating and spec.numel for spec in self.region.inputs)
        if not has_floats:
            return [f for f in FAMILIES if f.name in ("recorded", "varied")]
        return [f for f in FAMILIES if self._sum_length > 1 or not f.summing]

    def _make(self, name: str, seed: int) -> Case:
        if name == NUDGED:
            how = family("varied")
            storages = nudged(self.region, make_storages(self.region, self.stats, how, seed, self._device))
        else:
            how = family(name)
            storages = make_storages(self.region, self.stats, how, seed, self._device)
        return self._reference(name, seed, how, storages)

    def _reference(self, name: str, seed: int, how: Family, storages: tuple[torch.Tensor, ...]) -> Case:
        import torch

        region = self.region
        inputs = [view_storage(d, s) for d, s in zip(storages, region.inputs, strict=True)]
        with torch.no_grad():
            stock = self.eager(*inputs)
            exact = self._exact(*self._upcast(storages))
            shaken = [] if how.special else [self._exact(*self._upcast(storages, s)) for s in self._shakes()]
        expected: list[torch.Tensor] = []
        exacts: list[torch.Tensor | None] = []
        eagers: list[torch.Tensor | None] = []
        bounds: list[Bound | None] = []
        skipped = ""
        for k, spec in enumerate(region.outputs):
            if not spec.is_floating:
                same = torch.equal(stock[k], exact[k].to(stock[k].dtype))
                expected.append(stock[k])
                exacts.append(None if same else exact[k].to(stock[k].dtype))
                eagers.append(None)
                bounds.append(None)
                continue
            want, got = exact[k].double(), stock[k]
            scale = self._scale(k, want)
            differ = bool((got.isfinite() != want.isfinite()).any())
            error = tolerance.measure(got, want, scale, got if differ else None)
            inherent = [tolerance.measure(other[k], want, scale, other[k]) for other in shaken]
            if error.l2 > tolerance.EAGER_USELESS:
                skipped = f"eager itself is off by {error.l2:.1e} there"
            expected.append(want)
            exacts.append(None)
            eagers.append(got if differ else None)
            bounds.append(
                tolerance.bound(spec.dtype, error, inherent, self._sum_length, scale, coherent=how.coherent)
            )
        return Case(
            name,
            seed,
            how.special,
            storages,
            tuple(expected),
            tuple(exacts),
            tuple(eagers),
            tuple(bounds),
            skipped,
        )

    def _shakes(self) -> range:
        """Seeds of perturbations: one draw says little about an output of a few elements."""
        smallest = min((s.numel for s in self.region.outputs if s.is_floating and s.numel), default=0)
        return range(1, 2 if smallest > _FEW else 1 + _DRAWS_OF_FEW)

    def _upcast(self, storages: Sequence[torch.Tensor], shake_seed: int | None = None) -> list[torch.Tensor]:
        """Inputs in float64 with the strides they have; with a seed, each changed by half a float32 ulp."""
        import torch

        result = []
        for data, spec in zip(storages, self.region.inputs, strict=True):
            if not spec.is_floating or spec.numel == 0:
                tensor = view_storage(data, spec)
                result.append(tensor.double() if spec.is_floating else tensor)
                continue
            flat = data.view(torch_dtype(spec.dtype)).double()
            if shake_seed is not None:
                random = torch.Generator(flat.device).manual_seed(self.seed + shake_seed)
                sign = torch.empty_like(flat).bernoulli_(0.5, generator=random)
                flat *= 1 + (2 * sign - 1) * _PERTURBATION.get(spec.dtype, _PERTURBATION_DEFAULT)
            result.append(flat.as_strided(spec.shape, spec.strides, spec.offset))
        return result

    def _scale(self, output: int, want: torch.Tensor) -> float:
        """The rms that errors of this output are measured in.

        Where it is (nearly) zero by construction, as for the variance of constant rows, the output's usual
        rms on recorded inputs stands in.
        """
        own = tolerance.rms(want)
        typical = self._usual(output)
        return own if own > 1e-6 * typical else typical

    def _usual(self, output: int) -> float:
        if self._typical is None:
            import torch

            storages = make_storages(self.region, self.stats, family("varied"), self.seed, self._device)
            with torch.no_grad():
                outs = self._exact(*self._upcast(storages))
            self._typical = tuple(tolerance.rms(o) if o.is_floating_point() else 1.0 for o in outs)
        return self._typical[output]


def metadata_problem(region: Region, outputs: Sequence[torch.Tensor]) -> str:
    """Why eager's outputs are not what the region's specs say ("" when they are)."""
    if len(outputs) != len(region.outputs):
        return f"the region says {len(region.outputs)} outputs, eager gives {len(outputs)}"
    for name, spec, out in zip(region.output_names, region.outputs, outputs, strict=True):
        got = TensorSpec(tuple(out.shape), str(out.dtype).removeprefix("torch."), tuple(out.stride()))
        plain = TensorSpec(spec.shape, spec.dtype, spec.strides)
        if (got.shape, got.dtype) != (plain.shape, plain.dtype) or (
            got.strides != plain.strides and not (got.is_contiguous and plain.is_contiguous)
        ):
            return f"{name} is {got} in eager but {spec} in the region"
    return ""


def memory_needed(region: Region) -> int:
    """Bytes the oracle needs at least: everything in float64, with room for intermediates."""
    held = sum(storage_bytes(s) for s in region.inputs) + sum(storage_bytes(s) for s in region.outputs)
    wide = sum(8 * s.numel for s in (*region.inputs, *region.outputs))
    largest = max((8 * s.numel for s in region.specs.values()), default=0)
    return 2 * held + 2 * wide + 3 * largest


def check_error(case: Case, k: int, out: torch.Tensor) -> tuple[float, Error]:
    """(error over bound, error) of a candidate's output ``k``; integers must be exact."""
    import torch

    want, limit = case.expected[k], case.bounds[k]
    if limit is not None:
        error = tolerance.measure(out, want, limit.scale, case.eager[k])
        return limit.fraction(error), error
    wrong = out != want
    alternative = case.exact[k]
    if alternative is not None:
        # Nearly a tie: eager and the oracle disagree, so either answer counts.
        wrong &= out != alternative
    if out.dtype == torch.bool:
        wrong |= out.view(torch.uint8) > 1
    if not bool(wrong.any()):
        return 0.0, Error(0.0, 0.0, 0)
    at = int(wrong.reshape(-1).nonzero()[0])
    return float("inf"), Error(float(wrong.double().mean()), 1.0, at)
