"""What a source may say before any compiler reads it."""

from __future__ import annotations

import pytest

from kernelforge_lab.judge.screen import screen
from kernelforge_lab.kernels.region import Region
from kernelforge_lab.proposers.templates.proposer import STRATEGIES, TemplatesProposer, write

from .numerics import FUNCTIONS, row_region
from .test_kernels import GOOD


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_kernels_pass(path: object) -> None:
    assert screen(path.read_text(), "cpu") == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_templates_pass(function: str, target: str) -> None:
    region: Region = row_region(function, 1000)
    for name in TemplatesProposer().strategies(region, target, None):
        strategy = next(s for s in STRATEGIES if (s.name, s.target) == (name, target))
        assert screen(write(region, strategy, 2), target) == "", name


ALLOWED = """
#include <cmath>
#  include <omp.h>   // a comment with a "quote
/* #include "secret" */
#define TWICE(x) \\
  ((x) + (x))
static inline __attribute__((always_inline)) float f(float x) { return x; }
[[gnu::noinline]] static float g(const float* __restrict__ x) { return x[0]; }
typedef float v8 __attribute__((vector_size(32), aligned(4)));
#pragma omp parallel for simd
_Pragma("omp simd")
"""


def test_what_kernels_use_is_allowed() -> None:
    assert screen(ALLOWED, "cpu") == ""


@pytest.mark.parametrize(
    "source,line,word",
    [
        ('#include "/etc/passwd"', 1, "#include"),
        ("int a;\n#include </etc/passwd>", 2, "#include"),
        ("#include <fstream>", 1, "#include"),
        ("#define H <fstream>\n#include H", 2, "#include"),
        ("#inc\\\nlude <fstream>", 1, "#include"),
        ("/**/ # /**/ include <fstream>", 1, "#include"),
        ("int a; /\\\n* x *\\\n/ int b;\n#include <fstream>", 4, "#include"),
        ("#embed </etc/passwd>", 1, "#embed"),
        ("#import <fstream>", 1, "#import"),
        ("#include_next <fstream>", 1, "#include_next"),
        ("#if __has_include(</root/.netrc>)\n#endif", 1, "__has_include"),
        ('void f() { asm("syscall"); }', 1, "asm"),
        ('void f() { __asm__\n volatile ("syscall"); }', 1, "__asm__"),
        ('#define A __asm\nA("nop");', 1, "__asm"),
        ("#define J(a, b) a##b\nJ(as, m)", 1, "##"),
        ("#define J(a, b) a%:%:b", 1, "digraphs"),
        ('const char* s = R"(x)"; // )" asm', 1, "raw string"),
        ("int a = 1'000;", 1, "digit separator"),
        ("int \\u0061 = 1;", 1, "backslash"),
        ('char q = \'"\'; asm(""); char r = \'"\';', 1, "asm"),
        ('const char* s = "/*"; asm(""); const char* t = "*/";', 1, "asm"),
        ("#pragma GCC optimize(\"Ofast\")", 1, "#pragma"),
        ('_Pragma("GCC optimize 3")', 1, "_Pragma"),
        ("#define P(x) _Pragma(#x)", 1, "_Pragma"),
        ("__attribute__((constructor)) void f() {}", 1, "constructor"),
        ("int a;\n__attribute__ (\n(__section__(\".init\"))) void f() {}", 2, "__section__"),
        ("#define A __attribute__\nA((naked)) void f() {}", 1, "attribute without"),
        ("#define hot constructor\n__attribute__((hot)) void f() {}", 1, "hot"),
        ("[[gnu::ifunc(\"r\")]] void f();", 1, "ifunc"),
        ("[ [gnu::\nconstructor] ] void f();", 1, "constructor"),
    ],
)  # fmt: skip
def test_what_reaches_beyond_arithmetic_is_refused_with_its_line(source: str, line: int, word: str) -> None:
    reason = screen(source, "cpu")
    assert reason.startswith(f"line {line}: ")
    assert word in reason


def test_cuda_sources_declare_launches_and_take_no_host_headers() -> None:
    assert "<<<" in screen("void run() { k<<<1, 32>>>(nullptr); }", "cuda")
    assert "#include" in screen("#include <cublas_v2.h>", "cuda")
    assert "#include" in screen("#include <torch/extension.h>", "cuda")
    assert screen("#pragma unroll\n#include <cuda_bf16.h>\nint __device__ a;", "cuda") == ""
    assert screen('asm volatile("bar.sync 0;" ::: "memory");', "cuda") == ""
