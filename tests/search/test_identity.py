"""Two texts of one kernel are one kernel."""

from kernelforge_lab.judge.verdict import Status, Verdict
from kernelforge_lab.kernels.kernel import Kernel
from kernelforge_lab.search.identity import binary_key, normalised, source_key

SOURCE = """// forge: target cpu
// forge: idea one pass
// forge: tune BLOCK 8 16
// forge: launch f args=(in0, out0, BLOCK)
#include <cmath>
extern "C" void f(const float* x, float* y, long long b) {
  y[0] = x[0] + 1;  // the answer
}
"""


def kernel(source: str = SOURCE, **params: int) -> Kernel:
    return Kernel(source, "r", "cpu", tuple(params.items()))


def test_comments_white_space_and_ideas_do_not_make_a_new_kernel() -> None:
    other = SOURCE.replace("// the answer", "/* 42\n */").replace("idea one pass", "idea clever")
    other = other.replace(" + ", "+").replace("  y[0]", "\n\n\ty[0]")
    assert source_key(kernel()) == source_key(kernel(other))


def test_other_code_parameters_or_launches_do() -> None:
    keys = {
        source_key(kernel()),
        source_key(kernel(BLOCK=16)),
        source_key(kernel(SOURCE.replace("+ 1", "+ 2"))),
        source_key(kernel(SOURCE.replace("args=(in0, out0, BLOCK)", "args=(in0, out0, 4)"))),
    }
    assert len(keys) == 4


def test_directives_keep_their_lines_and_strings_are_no_comments() -> None:
    text = normalised('#define A 1 // one\n#define B \\\n  2\nf("a  // b",  1 );')
    assert text.splitlines() == ["#define A 1", "#define B \\", "2", 'f("a//b",1);']


def test_words_stay_apart() -> None:
    assert normalised("int\n  x ;") == "int x;"


def test_equal_machine_code_is_a_twin_unless_the_launch_differs() -> None:
    verdict = Verdict(Status.FASTER, binary_hash="abc")
    assert binary_key(kernel(), verdict) == binary_key(kernel(SOURCE.replace("answer", "reply")), verdict)
    assert binary_key(kernel(BLOCK=8), verdict) != binary_key(kernel(BLOCK=16), verdict)
    in_code_only = SOURCE.replace("out0, BLOCK)", "out0, 4)")
    assert binary_key(kernel(in_code_only, BLOCK=8), verdict) == binary_key(
        kernel(in_code_only, BLOCK=16), verdict
    )
    assert binary_key(kernel(), Verdict(Status.PARSE_ERROR)) is None
