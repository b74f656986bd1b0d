"""Which symbols a cpu kernel may import: arithmetic, OpenMP, memory; nothing that reaches the system."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_LIBM: Final = (
    "a?(?:sin|cos|tan)h?|atan2|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sqrt|cbrt|hypot|erf|erfc"
    "|[tl]gamma|floor|ceil|trunc|round|rint|nearbyint|l?l?round|l?l?rint|fmod|remainder|fma|fmin|fmax"
    "|fabs|fdim|copysign|nextafter|ldexp|frexp|scalbn|modf|sincos|logb|ilogb"
)
_OPENMP: Final = r"GOMP_\w+|__kmpc_\w+|omp_get_\w+|omp_in_parallel"
_MEMORY: Final = (
    r"mem(?:cpy|move|set|cmp)|__mem(?:cpy|move|set)_chk|malloc|calloc|free|aligned_alloc|posix_memalign"
)
# Of the C++ runtime: operator new and delete, exceptions and their types, std::vector and its like.
_RUNTIME: Final = (
    r"_Zn[wa]\w+|_Zd[la]\w+|_ZSt\d+__throw_\w+|_ZSt9terminatev|_ZSt7nothrow|_ZT[ISV]\w+"
    # Only exception classes of std: std::thread and streams are spelled _ZNSt… too.
    r"|_ZNK?St\d+\w*(?:exception|error|bad_alloc|bad_cast|bad_array|out_of_range)\w*"
    r"|_Unwind_Resume|__gxx_personality_v0"
    r"|__cxa_\w+|__stack_chk_fail|__tls_get_addr|__gmon_start__|_ITM_\w+"
)
_ALLOWED: Final = re.compile(rf"(?:{_LIBM})[fl]?|{_OPENMP}|{_MEMORY}|{_RUNTIME}", re.ASCII)


def foreign_symbols(imports: Iterable[str]) -> tuple[str, ...]:
    """Those of ``imports`` that no kernel needs (``system``, ``open``, ``PyRun_SimpleString`` …)."""
    return tuple(sorted(name for name in imports if not _ALLOWED.fullmatch(name)))
