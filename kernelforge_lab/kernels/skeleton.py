"""A kernel to start from by hand: right names and types, nothing computed yet."""

from __future__ import annotations

from .region import Region
from .spec import TensorSpec


def skeleton(region: Region, target: str) -> str:
    """Source in the ``// forge:`` format for ``region`` with an empty body and the region as comment."""
    tensors = [*zip(region.input_names, region.inputs, strict=True)]
    results = [*zip(region.output_names, region.outputs, strict=True)]
    names = ", ".join(name for name, _ in (*tensors, *results))
    parameters = [f"const {name.upper()}_T* {name}" for name, _ in tensors]
    parameters += [f"{name.upper()}_T* {name}" for name, _ in results]
    comments = [f"//   {line}" for line in region.text.splitlines()]
    shapes = [f"// {name}: {_describe(spec)}" for name, spec in (*tensors, *results)]
    head = ["// forge: target " + target, "// forge: idea say in one line what you try"]
    if target == "cuda":
        head.append("// forge: tune BLOCK 256 128 512")
        head.append(f"// forge: launch kernel grid=(cdiv(NUMEL, BLOCK)) block=(BLOCK) args=({names})")
        body = [
            f'extern "C" __global__ void kernel({", ".join(parameters)}) {{',
            "  long long i = blockIdx.x * (long long)BLOCK + threadIdx.x;",
            "  if (i >= NUMEL) return;",
            "  // out0[i] = …",
            "}",
        ]
    else:
        head.append(f"// forge: launch kernel args=({names})")
        body = [
            f'extern "C" void kernel({", ".join(parameters)}) {{',
            "#pragma omp parallel for num_threads(THREADS_MAX)",
            "  for (long long i = 0; i < NUMEL; i++) {",
            "    // out0[i] = …",
            "  }",
            "}",
        ]
    return "\n".join([*head, "//", *comments, "//", *shapes, "", *body, ""])


def _describe(spec: TensorSpec) -> str:
    layout = "contiguous" if spec.is_contiguous else f"strides {list(spec.strides)}"
    return f"{spec.dtype} {list(spec.shape)}, {layout}"
