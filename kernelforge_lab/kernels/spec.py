"""What a tensor looks like without the tensor: shape, dtype, strides, offset."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Final

# name -> (short name used in region text, bytes per element)
_DTYPES: Final = {
    "float64": ("f64", 8),
    "float32": ("f32", 4),
    "float16": ("f16", 2),
    "bfloat16": ("bf16", 2),
    "int64": ("i64", 8),
    "int32": ("i32", 4),
    "int16": ("i16", 2),
    "int8": ("i8", 1),
    "uint8": ("u8", 1),
    "bool": ("b1", 1),
}
_FROM_SHORT: Final = {short: name for name, (short, _) in _DTYPES.items()}
FLOATING: Final = frozenset({"float64", "float32", "float16", "bfloat16"})
DTYPES: Final = tuple(_DTYPES)

# Unit roundoff times two (machine epsilon) per floating dtype, as torch.finfo gives it.
EPS: Final = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}


def itemsize_bytes(dtype: str) -> int:
    """Bytes per element of a dtype (torch's name)."""
    return _DTYPES[dtype][1]


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements, as torch makes them (a size-0 dim counts as 1)."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape (elements), dtype (torch's name), strides and storage offset (elements) of a tensor."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def contiguous(cls, shape: tuple[int, ...], dtype: str = "float32") -> TensorSpec:
        return cls(tuple(shape), dtype, contiguous_strides(tuple(shape)))

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize_bytes(self) -> int:
        return _DTYPES[self.dtype][1]

    @property
    def is_floating(self) -> bool:
        return self.dtype in FLOATING

    @property
    def is_contiguous(self) -> bool:
        expected = contiguous_strides(self.shape)
        return all(
            size <= 1 or stride == want
            for size, stride, want in zip(self.shape, self.strides, expected, strict=True)
        )

    @property
    def extent(self) -> int:
        """Elements from the first to one past the last addressed one (0 when empty)."""
        if self.numel == 0:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def distinct_numel(self) -> int:
        """Elements really read: an expanded (stride 0) dimension counts once."""
        return math.prod(n for n, s in zip(self.shape, self.strides, strict=True) if s != 0 or n == 0)

    @property
    def bytes_touched(self) -> int:
        """Bytes that a kernel reading (or writing) all of it must move at least once."""
        return self.distinct_numel * self.itemsize_bytes

    def __str__(self) -> str:
        """Short text form: ``f32[2,3]``; strides after ``;`` only when not contiguous; ``@`` offset."""
        text = f"{_DTYPES[self.dtype][0]}[{','.join(map(str, self.shape))}"
        if not self.is_contiguous:
            text += ";" + ",".join(map(str, self.strides))
        if self.offset:
            text += f"@{self.offset}"
        return text + "]"

    _PATTERN: ClassVar = re.compile(r"(\w+)\[([\d,]*)(?:;([\d,]*))?(?:@(\d+))?\]")

    @classmethod
    def parse(cls, text: str) -> TensorSpec:
        """Inverse of ``str``. Raises ValueError with the text that could not be read."""
        match = cls._PATTERN.fullmatch(text.strip())
        if match is None or match[1] not in _FROM_SHORT:
            raise ValueError(f"not a tensor spec: {text!r} (expected for example f32[2,3])")
        shape = tuple(int(n) for n in match[2].split(",") if n)
        strides = (
            tuple(int(n) for n in match[3].split(",") if n)
            if match[3] is not None
            else contiguous_strides(shape)
        )
        if len(strides) != len(shape):
            raise ValueError(f"{text!r} has {len(shape)} sizes but {len(strides)} strides")
        return cls(shape, _FROM_SHORT[match[1]], strides, int(match[4] or 0))
