from __future__ import annotations

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelforge_lab.exc import KernelSourceError
from kernelforge_lab.kernels.format import KernelFile, parse
from kernelforge_lab.kernels.region import Region

REGION = Region.parse("""region(in0: f32[6,8], in1: bf16[8;0], in2: b1[]) {
  t0 = aten.add.Tensor(in0, in1) : f32[6,8]
  t1 = aten.sum.dim_IntList(t0, [1]) : f32[6]
  return t0, t1
}""")

CPU = """\
// forge: target cpu
// forge: launch f args=(in0, in1, in2, out0, out1)
"""
CUDA = """\
// forge: target cuda
// forge: launch f grid=(ROWS) block=(32) args=(in0, in1, in2, out0, out1)
"""


def test_reads_every_kind_of_line() -> None:
    file = parse("""\
// one pass over each row
// forge: target cuda
// forge: idea keep the row in registers
// forge: idea and reduce by shuffles
// forge: tune BLOCK 128 256 512
  //forge:tune UNROLL 4
// forge: workspace partial float32 ROWS*2
// forge: launch first grid=(ROWS) block=(BLOCK, 2) smem=BLOCK*4 args=(in0, partial)
// forge: launch second grid=(cdiv(NUMEL, BLOCK*8), 1, 1) block=(BLOCK) args=(partial, out0, out1, COLS - 1)
// forge: atomics
__global__ void first() {}
""")
    assert file.target == "cuda"
    assert file.idea == "keep the row in registers and reduce by shuffles"
    assert file.tunes == {"BLOCK": (128, 256, 512), "UNROLL": (4,)}
    assert [(w.name, w.dtype, w.numel.text) for w in file.workspaces] == [("partial", "float32", "ROWS*2")]
    assert [launch.function for launch in file.launches] == ["first", "second"]
    assert file.launches[1].args[:3] == ("partial", "out0", "out1")
    assert file.atomics

    plan = file.resolve(REGION, {"BLOCK": 256})
    assert plan.params == {"BLOCK": 256, "UNROLL": 4}
    assert plan.workspaces == (("partial", "float32", 12),)
    assert plan.launches == (
        ("first", (6,), (256, 2), 1024, ("in0", "partial")),
        ("second", (1, 1, 1), (256,), 0, ("partial", "out0", "out1", 7)),
    )


def test_lines_may_come_in_any_order_and_in_windows_text() -> None:
    file = parse(
        "// forge: launch f args=(scratch, in0, out0)\r\n"
        "// forge: workspace scratch int8 4\r\n// forge: target cpu\r\n"
    )
    assert file.launches[0].args == ("scratch", "in0", "out0")
    assert not file.atomics
    assert file.idea == ""


def test_symbols_describe_every_tensor() -> None:
    defines = parse(CPU + "// forge: tune UNROLL 8\n").resolve(REGION, threads=3).defines
    assert defines == {
        "IN0_T": "float", "IN1_T": "kf_bf16", "IN2_T": "bool", "OUT0_T": "float", "OUT1_T": "float",
        "IN0_NUMEL": 48, "IN0_D0": 6, "IN0_D1": 8, "IN0_S0": 8, "IN0_S1": 1,
        "IN1_NUMEL": 8, "IN1_D0": 8, "IN1_S0": 0,
        "IN2_NUMEL": 1,
        "OUT0_NUMEL": 48, "OUT0_D0": 6, "OUT0_D1": 8, "OUT0_S0": 8, "OUT0_S1": 1,
        "OUT1_NUMEL": 6, "OUT1_D0": 6, "OUT1_S0": 1,
        "NUMEL": 48, "COLS": 8, "ROWS": 6, "THREADS_MAX": 3, "UNROLL": 8,
    }  # fmt: skip


@pytest.mark.parametrize(
    "spec, numel, cols, rows",
    [("f32[]", 1, 1, 1), ("f32[0,4]", 0, 4, 0), ("f32[4,0]", 0, 0, 0), ("f32[5]", 5, 5, 1)],
)
def test_rows_and_columns_of_small_and_empty_outputs(spec: str, numel: int, cols: int, rows: int) -> None:
    region = Region.parse(f"region(in0: {spec}) {{\n  t0 = aten.neg.default(in0) : {spec}\n  return t0\n}}")
    plan = parse("// forge: target cpu\n// forge: launch f args=(in0, out0, NUMEL, COLS, ROWS)").resolve(
        region
    )
    assert plan.launches[0].args == ("in0", "out0", numel, cols, rows)


def test_parameters_default_to_the_first_value() -> None:
    file = parse(CPU + "// forge: tune A 3 1 2\n// forge: tune B 7\n")
    assert file.choose() == {"A": 3, "B": 7}
    assert file.choose((("A", 2),)) == {"A": 2, "B": 7}


def test_a_plan_travels_between_processes() -> None:
    plan = parse(CPU).resolve(REGION)
    assert pickle.loads(pickle.dumps(plan)) == plan


LAUNCH_CPU = "launch FUNCTION args=(in0, out0)"
LAUNCH_CUDA = "launch FUNCTION grid=(…) block=(…) args=(in0, out0)"
WORKSPACE = "a lower-case name other than in0 or out0, as in: workspace partial float32 ROWS*2"
TUNE = "capitals, digits and _, as in: tune BLOCK 128 256"
DTYPES = "one of float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool"


@pytest.mark.parametrize(
    "source, line, reason, expected",
    [
        ("", 1, "no target line", "// forge: target cpu (or cuda)"),
        ("int x;\n// forge: launch f args=()", 1, "no target line", "// forge: target cpu (or cuda)"),
        ("// forge: target cpu", 1, "no launch line", "// forge: launch FUNCTION args=(in0, out0)"),
        ("\n// forge: target hip", 2, "unknown target 'hip'", "cpu or cuda"),
        (CPU + "// forge: target cpu", 3, "a second target line", "one target line per file"),
        (CPU + "// forge:", 3, "an empty forge line", "target, tune, workspace, launch, atomics or idea"),
        (CPU + "// forge: lunch f args=(in0)", 3, "unknown forge line 'lunch'", "launch"),
        (
            CPU + "// forge: zzz",
            3,
            "unknown forge line 'zzz'",
            "target, tune, workspace, launch, atomics or idea",
        ),
        (CPU + "// forge tune BLOCK 1", 3, "a forge line without its colon", "// forge: tune …"),
        (CPU + "// forge: atomics float", 3, "unexpected 'float' after atomics", "nothing after it"),
        (CPU + "// forge: tune", 3, "'' cannot name a parameter", TUNE),
        (CPU + "// forge: tune block 1", 3, "'block' cannot name a parameter", TUNE),
        (CPU + "// forge: tune COLS 1", 3, "COLS is one of the region's own symbols", "another name"),
        (CPU + "// forge: tune IN12_S3 1", 3, "IN12_S3 is one of the region's own symbols", "another name"),
        (CPU + "// forge: tune KF_X 1", 3, "KF_X is one of the region's own symbols", "another name"),
        (CPU + "// forge: tune A", 3, "A has no values", "integers, as in: tune A 1 2 4"),
        (CPU + "// forge: tune A 1 x", 3, "'x' is no value for A", "whole numbers from 0 to 2147483647"),
        (CPU + "// forge: tune A -1", 3, "'-1' is no value for A", "whole numbers from 0 to 2147483647"),
        (
            CPU + "// forge: tune A 2147483648",
            3,
            "'2147483648' is no value for A",
            "whole numbers from 0 to 2147483647",
        ),
        (CPU + "// forge: tune A 1 2 1", 3, "A lists a value twice", "every value once"),
        (
            CPU + "// forge: tune A 1\n// forge: tune A 2",
            4,
            "a second tune line for A",
            "all its values on one line",
        ),
        (CPU + "// forge: tune A " + " ".join(map(str, range(65))), 3, "A has 65 values", "at most 64"),
        (
            CPU + "".join(f"// forge: tune A{i} 1\n" for i in range(17)),
            19,
            "too many tune lines",
            "at most 16",
        ),
        (CPU + "// forge: workspace", 3, "'' cannot name a workspace", WORKSPACE),
        (CPU + "// forge: workspace in7 float32 1", 3, "'in7' cannot name a workspace", WORKSPACE),
        (CPU + "// forge: workspace A float32 1", 3, "'A' cannot name a workspace", WORKSPACE),
        (CPU + "// forge: workspace a float 1", 3, "unknown dtype 'float'", DTYPES),
        (CPU + "// forge: workspace a", 3, "unknown dtype ''", DTYPES),
        (
            CPU + "// forge: workspace a int8",
            3,
            "workspace a has no size",
            "a number of elements, as in: workspace a int8 ROWS*2",
        ),
        (
            CPU + "// forge: workspace a int8 4\n// forge: workspace a int8 4",
            4,
            "a second workspace named a",
            "another name",
        ),
        (
            CPU + "".join(f"// forge: workspace a{i} int8 1\n" for i in range(17)),
            19,
            "too many workspaces",
            "at most 16",
        ),
        (
            CPU + "// forge: workspace a int8 2 3",
            3,
            "unexpected '3' at column 3 of '2 3'",
            "an operator or the end of the expression",
        ),
        (CPU + "// forge: launch", 3, "launch names no function", LAUNCH_CPU),
        (CPU + "// forge: launch 3d args=()", 3, "launch names no function", LAUNCH_CPU),
        (CPU + "// forge: launch f", 3, "launch f has no args", LAUNCH_CPU),
        (CPU + "// forge: launch f(in0)", 3, "unexpected '(in0)' in launch", LAUNCH_CPU),
        (CPU + "// forge: launch f args=in0", 3, "args is 'in0'", "a list in parentheses: args=(…)"),
        (CPU + "// forge: launch f args=(in0", 3, "args has an unclosed parenthesis", "')'"),
        (CPU + "// forge: launch f args=(in0) x", 3, "unexpected 'x' after args=(…)", "nothing after ')'"),
        (
            CPU + "// forge: launch f args=(in0,,out0)",
            3,
            "args has an empty entry",
            "an entry between the commas",
        ),
        (CPU + "// forge: launch f args=(in0) args=(in0)", 3, "args is given twice", "args once"),
        (CPU + "// forge: launch f grid=(1) args=(in0)", 3, "a cpu launch takes no grid", "args="),
        (CPU + "// forge: launch f threads=2 args=(in0)", 3, "unknown launch key 'threads'", "args="),
        (
            CPU + "// forge: launch f args=(in0, y)",
            3,
            "unknown name 'y' in args",
            "in0…, out0…, a declared workspace or an integer expression",
        ),
        (
            CPU + "// forge: workspace part int8 1\n// forge: launch f args=(in0, prt)",
            4,
            "unknown name 'prt' in args",
            "in0…, out0…, a workspace (part) or an integer expression",
        ),
        (
            CPU + "// forge: launch f args=(in0, ROWS +)",
            3,
            "unexpected the end at column 7 of 'ROWS +'",
            "a number, a name or '('",
        ),
        (
            CPU + "// forge: launch f args=(" + ",".join(["in0"] * 65) + ")",
            3,
            "launch f has 65 args",
            "at most 64",
        ),
        (
            "// forge: target cpu\n" + "// forge: launch f args=()\n" * 65,
            66,
            "too many launch lines",
            "at most 64",
        ),
        (CUDA + "// forge: launch f args=(in0)", 3, "launch f has no grid", LAUNCH_CUDA),
        (CUDA + "// forge: launch f grid=(1) args=(in0)", 3, "launch f has no block", LAUNCH_CUDA),
        (CUDA + "// forge: launch f grid=() block=(1) args=(in0)", 3, "grid has 0 entries", "1 to 3"),
        (CUDA + "// forge: launch f grid=(1,1,1,1) block=(1) args=(in0)", 3, "grid has 4 entries", "1 to 3"),
        (
            CUDA + "// forge: launch f stream=1 args=(in0)",
            3,
            "unknown launch key 'stream'",
            "grid= block= smem= args=",
        ),
        (CPU + "\0", 3, "a NUL character", "text"),
        (CPU + "\ud800", 3, "a character that is not valid Unicode", "UTF-8 text"),
        ("x" * (256 * 1024 + 1), 1, "the source has 262145 bytes", "at most 262144"),
    ],
)
def test_malformed_lines_say_line_reason_and_what_was_expected(
    source: str, line: int, reason: str, expected: str
) -> None:
    with pytest.raises(KernelSourceError) as error:
        parse(source)
    assert (error.value.line, error.value.reason, error.value.expected) == (line, reason, expected)


@pytest.mark.parametrize(
    "source, params, line, reason, expected",
    [
        (CPU, {"A": 1}, 1, "there is no tune line for the parameter A", "no parameters: the source has no tune line"),
        (CPU + "// forge: tune B 1", {"A": 1}, 1, "there is no tune line for the parameter A", "B"),
        (CPU + "// forge: tune A 1 2", {"A": 3}, 3, "A=3 is not one of its tune values", "1, 2"),
        (CPU + "// forge: launch g args=(in3)", {}, 3, "the region has no in3", "one of in0, in1, in2"),
        (CPU + "// forge: launch g args=(out2)", {}, 3, "the region has no out2", "one of out0, out1"),
        (CPU + "// forge: launch g args=(IN0_D2)", {}, 3, "unknown name 'IN0_D2'", "one of IN0_D0, IN0_D1, IN1_D0"),
        (CPU + "// forge: launch g args=(1 / IN1_S0)", {}, 3, "'1 / IN1_S0' divides by zero", "a divisor that is not 0 for this region"),
        (CPU + "// forge: workspace w int8 0-1", {}, 3, "workspace w has -1 elements", "0 to 8589934592"),
        (CPU + "// forge: workspace w float64 ROWS*1000000000", {}, 3, "workspace w has 6000000000 elements", "0 to 1073741824"),
        (
            "// forge: target cpu\n// forge: launch f args=(in0, out0)",
            {},
            2,
            "out1 is not passed to any launch",
            "every output (out0, out1) among the args",
        ),
        (CUDA.replace("(ROWS)", "(ROWS - 6)"), {}, 2, "grid x is 0", "1 to 2147483647"),
        (CUDA.replace("(ROWS)", "(1, 65536)"), {}, 2, "grid y is 65536", "1 to 65535"),
        (CUDA.replace("(32)", "(2048)"), {}, 2, "block x is 2048", "1 to 1024"),
        (CUDA.replace("(32)", "(1, 1, 65)"), {}, 2, "block z is 65", "1 to 64"),
        (CUDA.replace("(32)", "(64, 32)"), {}, 2, "block has 2048 threads", "at most 1024"),
        (CUDA.replace("args", "smem=300*1024 args"), {}, 2, "smem is 307200 bytes", "0 to 232448"),
        (CUDA.replace("ROWS", "THREADS_MAX"), {}, 2, "unknown name 'THREADS_MAX'", None),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_region_is_refused_with_its_line(
    source: str, params: dict[str, int], line: int, reason: str, expected: str | None
) -> None:
    file = parse(source)
    with pytest.raises(KernelSourceError) as error:
        file.resolve(REGION, params)
    assert (error.value.line, error.value.reason) == (line, reason)
    if expected is not None:
        assert error.value.expected == expected


def test_the_message_reads_as_one_sentence() -> None:
    error = KernelSourceError(3, "unknown target 'hip'", "cpu or cuda")
    assert str(error) == "line 3: unknown target 'hip' (expected cpu or cuda)"


FRAGMENTS = st.sampled_from(
    [
        *("// forge:", "//forge :", "// forge ", "target", "cpu", "cuda", "tune", "workspace", "launch"),
        *(
            "atomics",
            "idea",
            "args=(",
            "grid=(",
            "block=",
            "smem=",
            ")",
            "(",
            ",",
            "=",
            "in0",
            "out0",
            "ROWS",
        ),
        *("BLOCK", "1", "2", "float32", "cdiv(", "+", "/", "//", "\n", "\r\n", " ", "\t", "\x0b", "\u2028"),
        *("é", "\0"),
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(FRAGMENTS, max_size=40).map("".join)))
def test_only_kernel_source_errors_escape_from_any_text(text: str) -> None:
    try:
        file = parse(text)
        assert isinstance(file, KernelFile)
        file.resolve(REGION)
    except KernelSourceError as error:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.reason


@given(st.lists(FRAGMENTS, max_size=12).map("".join), st.integers(0, 2**32), st.integers(0, 2))
def test_only_kernel_source_errors_escape_from_damaged_kernels(noise: str, seed: int, cut: int) -> None:
    whole = CUDA + "// forge: tune BLOCK 1 2\n// forge: workspace w float32 ROWS*BLOCK\n"
    at = seed % len(whole)
    try:
        parse(whole[:at] + noise + whole[at + cut :]).resolve(REGION)
    except KernelSourceError as error:
        assert error.line >= 1


def test_a_kernel_file_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        parse(CPU).target = "cuda"  # type: ignore[misc]
