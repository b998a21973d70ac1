"""Stated work: the multiplications of a graph in the precision that the graph states for each matrix operator.

A compiler such as TensorRT fuses operators, and takes the precision of each operator from the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files, topology
from engine.kit.quantization.half import emulation, matmul_work
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import numpy as np
    import onnx

_UNCHANGED = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that may stand between a DequantizeLinear and the operator that multiplies."""
_NAMES = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64"}
_QUANTIZED = {"INT8": "int8", "UINT8": "int8", "INT4": "int4", "UINT4": "int4", "FLOAT8E4M3FN": "fp8"}


def multiplications(directory: Path, inputs: Mapping[str, np.ndarray], scratch: Path) -> dict[str, int]:
    """Return the precision of operators -> the number of their multiplications in one run on `inputs`.

    `directory/model.onnx` runs on the CPU, with half precisions emulated. Only the main graph is counted. Raises
    StepError where ONNX Runtime cannot run the model.
    """
    model = onnx_files.load_mapped(directory)
    types = emulation.tensor_types(model, directory)
    origins = topology.producers(model.graph)
    operators = [deepcopy(node) for node in model.graph.node if node.op_type in matmul_work.MATRIX]
    precisions = [_precision(node, types, origins) for node in operators]
    stored, names = matmul_work.stored(model), matmul_work.tensors(model)
    with mapped_weights.spilling(scratch):
        emulation.emulate(model, directory)
    extents = {**stored, **_extents(model, sorted(names - stored.keys()), inputs, scratch)}
    counts: dict[str, int] = {}
    for node, precision in zip(operators, precisions, strict=True):
        counts[precision] = counts.get(precision, 0) + matmul_work.multiplications(node, extents)
    return counts


def _extents(
    model: onnx.ModelProto, names: Sequence[str], inputs: Mapping[str, np.ndarray], scratch: Path
) -> dict[str, tuple[int, ...]]:
    """Run a model once, and return the extents of the tensors; `model` is changed."""
    from onnx import helper

    shapes = {name: f"shape_{number}_of_{name}" for number, name in enumerate(names)}
    model.graph.node.extend(helper.make_node("Shape", [name], [shape]) for name, shape in shapes.items())
    del model.graph.output[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(shape) for shape in shapes.values())
    measured = ort.run(ort.unoptimized_graph(model, scratch), inputs)
    return {name: tuple(int(extent) for extent in measured[shape]) for name, shape in shapes.items()}


def _precision(node: onnx.NodeProto, types: Mapping[str, int], origins: Mapping[str, onnx.NodeProto]) -> str:
    """Return the precision of an operator that multiplies its first two inputs.

    An operator with one dequantized factor computes in the type of its other factor; int4 is for weights only, so that
    weights in int4 decide.
    """
    factors = [_stored_as(name, types, origins) for name in node.input[:2]]
    if "int4" in factors:
        return "int4"
    if len(set(factors)) == 1 and factors[0] in _QUANTIZED.values():
        return factors[0]
    return _type(types.get(node.output[0]))


def _stored_as(name: str, types: Mapping[str, int], origins: Mapping[str, onnx.NodeProto]) -> str:
    """Return the precision from which a factor was dequantized, or the precision of the factor itself."""
    source = name
    while source in origins and origins[source].op_type in _UNCHANGED:
        source = origins[source].input[0]
    if source in origins and origins[source].op_type == "DequantizeLinear":
        return _type(types.get(origins[source].input[0]))
    return _type(types.get(name))


def _type(code: int | None) -> str:
    from onnx import TensorProto

    name: str = TensorProto.DataType.Name(code or TensorProto.FLOAT)
    return {**_NAMES, **_QUANTIZED}.get(name, name.lower())
