"""MatMulNBits: the operator that multiplies with weights in blocks of few bits, and in which precision it does so."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx

OPERATOR = "MatMulNBits"
BY_INTEGERS = 4
"""The value of the attribute `accuracy_level` that lets the operator round activations to int8.

The operator then multiplies integers, where ONNX Runtime has such a kernel for the CPU. Each block of a row has a scale
of its own, so that the scales of a row do not depend on the other rows of a batch.
"""

_LEAST_BLOCK = 16
"""The least size of a block, which is a power of two."""
_OUTPUTS = 32
_BYTE = 8
_SUMMED = 1e-4
"""Differences in the order of sums in float32 are smaller, as a share of the largest result; rounding is larger."""


def precisions(directory: Path) -> dict[tuple[int, ...], str]:
    """Return the precision of the model's products with packed weights, by the shape of the weight.

    A precision is a text such as "int8 with int4 weights".
    """
    model = onnx_files.load_graph(directory)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    named: dict[tuple[int, ...], str] = {}
    for node in model.graph.node:
        if node.op_type == OPERATOR and node.input[1] in shapes:
            numbers = {attribute.name: attribute.i for attribute in node.attribute}
            bits, block, level = (numbers.get(name, 0) for name in ("bits", "block_size", "accuracy_level"))
            computed = "int8" if level == BY_INTEGERS and _has_integer_kernel(bits, block) else "fp32"
            named[shapes[node.input[1]]] = f"{computed} with int{bits} weights"
    return named


def of_fused(weight: tuple[int, ...], inputs: int) -> str:
    """Return the precision of a product that ONNX Runtime itself has made of a DequantizeLinear and a MatMul.

    `weight` is the shape of the packed weight, [outputs, blocks, bytes of a block], and `inputs` the number of inputs
    of the product. ONNX Runtime lets such a product round activations (`session.qdq_matmulnbits_accuracy_level`).
    """
    _, blocks, size = weight
    block = max(_LEAST_BLOCK, 1 << (-(-inputs // blocks) - 1).bit_length())
    bits = size * _BYTE // block
    return f"{'int8' if _has_integer_kernel(bits, block) else 'fp32'} with int{bits} weights"


@cache
def _has_integer_kernel(bits: int, block: int) -> bool:
    """Whether ONNX Runtime multiplies integers on this CPU: then activations are rounded, and the product changes."""
    import numpy as np

    draw = np.random.default_rng(0)
    inputs = {"x": draw.standard_normal((1, block)).astype(np.float32)}
    codes = draw.integers(0, 256, (_OUTPUTS, 1, block * bits // _BYTE), dtype=np.uint8)
    with TemporaryDirectory() as folder:
        exact, other = (
            ort.run(ort.unoptimized_graph(_probe(codes, bits, block, level), Path(folder)), inputs)["y"]
            for level in (0, BY_INTEGERS)
        )
    return float(abs(exact - other).max()) > _SUMMED * float(abs(exact).max())


def _probe(codes: np.ndarray, bits: int, block: int, level: int) -> onnx.ModelProto:
    """Return a model of one product with a weight of one block of inputs."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    sizes = {"x": block, "y": _OUTPUTS}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in sizes.items()]
    stored = [
        numpy_helper.from_array(codes, "codes"),
        numpy_helper.from_array(np.ones((_OUTPUTS, 1), np.float32), "scales"),
    ]
    numbers = {"K": block, "N": _OUTPUTS, "bits": bits, "block_size": block, "accuracy_level": level}
    node = helper.make_node(OPERATOR, ["x", "codes", "scales"], ["y"], domain=CONTRIBUTED, **numbers)
    graph = helper.make_graph([node], "probe", ends[:1], ends[1:], stored)
    opsets = [helper.make_opsetid(*entry) for entry in (("", 17), (CONTRIBUTED, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)
