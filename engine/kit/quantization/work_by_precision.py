"""Stated work: the multiplications of a graph in the precision that the graph states for each matrix operator."""

# A compiler such as TensorRT fuses operators, and takes the precision of each operator from the graph.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.onnx import ir_models, mapped_weights
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import matmul_work
from engine.kit.quantization.half import emulation
from engine.runtimes.runner import Tally

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

_UNCHANGED = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators that may stand between a DequantizeLinear and the operator that multiplies."""
_NAMES = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16", "DOUBLE": "fp64"}
_QUANTIZED = {"INT8": "int8", "UINT8": "int8", "INT4": "int4", "UINT4": "int4", "FLOAT8E4M3FN": "fp8"}


def multiplications(directory: Path, inputs: Mapping[str, np.ndarray], scratch: Path) -> Tally:
    """Return the precision of operators -> the number of their multiplications in one run on `inputs`.

    `directory/model.onnx` runs on the CPU, with half precisions emulated. Only the main graph is counted. Raises
    StepError where ONNX Runtime cannot run the model.
    """
    passes = Pipeline(ir_models.load(directory))
    passes.run(emulation.infer_types)
    precisions = {node: _precision(node) for node in passes.model.graph if node.op_type in matmul_work.MATRIX}
    with mapped_weights.spilling(scratch):
        passes.run(emulation.emulate)
    tally = Tally()
    for node, count in matmul_work.measured(passes.model, inputs, scratch).items():
        tally.add(node.op_type, precisions[node], count)
    return tally


def _precision(node: ir.Node) -> str:
    """Return the precision of an operator that multiplies its first two inputs.

    An operator with one dequantized factor computes in the type of its other factor; int4 is for weights only, so that
    weights in int4 decide.
    """
    factors = [_stored_as(value) for value in node.inputs[:2] if value is not None]
    if "int4" in factors:
        return "int4"
    if len(set(factors)) == 1 and factors[0] in _QUANTIZED.values():
        return factors[0]
    return _type(node.outputs[0])


def _stored_as(value: ir.Value) -> str:
    """Return the precision from which a factor was dequantized, or the precision of the factor itself."""
    producer = value.producer()
    while producer is not None and producer.op_type in _UNCHANGED and producer.inputs[0] is not None:
        producer = producer.inputs[0].producer()
    if producer is not None and producer.op_type == "DequantizeLinear" and producer.inputs[0] is not None:
        return _type(producer.inputs[0])
    return _type(value)


def _type(value: ir.Value) -> str:
    name = "FLOAT" if value.dtype is None else value.dtype.name
    return {**_NAMES, **_QUANTIZED}.get(name, name.lower())
