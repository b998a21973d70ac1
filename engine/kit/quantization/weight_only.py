"""Weight-only quantization: weights in 4 or 8 bits for ONNX Runtime's CPU kernels, in blocks with a scale each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import ir_models, mapped_weights, onnx_files, surgery
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.onnx.passes import embedding_tables, linear_layers
from engine.kit.onnx.surgery import TensorNames
from engine.kit.quantization import precisions
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import WeightOnlyReport
from engine.runtimes.onnxruntime import matmul_nbits
from engine.runtimes.preparation import CONTRIBUTED

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

LOOKUP = "GatherBlockQuantized"
"""ONNX Runtime's operator that reads rows of a table in blocks."""
LEAST_OUTPUTS = 8
"""A layer with fewer outputs, such as a classifier, keeps its weights: they are few, and decide the answer."""
BLOCK = 32
"""The number of weights, along the axis that the product sums over, that share a scale and a zero point."""
_PAIR = 2 * BLOCK
"""A table whose rows have an odd number of blocks is not looked up in blocks: ONNX Runtime 1.24 would misread them."""
_MATRIX = 2
"""The number of axes of a matrix."""
_NUMBERS = 1 << 22
"""The number of weights that are quantized at once; a weight may be larger than the memory that a step may take."""


def quantize(fused: Path, out: Path, *, bits: int, keep_in: NamedLayers = NOTHING) -> WeightOnlyReport:
    """Write the model in the folder `fused` with weights of `bits` bits to the folder `out`, and return a report.

    The nodes of `keep_in` stay in fp32. Raises LeftAloneError where no layer has a weight that can be stored in blocks.
    """
    with TemporaryDirectory(dir=out.parent) as folder, mapped_weights.spilling(Path(folder)):
        passes = Pipeline(ir_models.load(fused))
        passes.run(linear_layers.split)
        passes.run(surgery.name_nodes)
        print(f"rounding weights to {bits} bits, a scale for each block of {BLOCK}")
        kept = keep_in.layers(passes.model)
        replaced = passes.run(replace_readers, bits, keep_in.nodes(passes.model))
        if not replaced.get("MatMul"):
            raise LeftAloneError(f"it has no {'other ' if kept else ''}linear layer with stored weights in float32")
        model = ir_models.proto(passes.model)
        left = precisions.left(model)
        onnx_files.save(model, out)
    sizes = precisions.finished(fused, out, replaced, left)
    return WeightOnlyReport(weights=f"int{bits}", quantized=replaced, left=tuple(left), kept=kept, bytes=sizes)


def replace_readers(model: ir.Model, bits: int, kept: Collection[str] = ()) -> Mapping[str, int]:
    """Store the weights of linear layers, and large tables, with `bits` bits; return how many nodes were replaced.

    A weight that several nodes read, such as a table of words that is also the weight of the output layer, is stored
    once. The nodes named in `kept` stay as they are.
    """
    names = TensorNames(model)
    counts: Counter[str] = Counter()
    for matrix, readers in readers_of(model.graph, kept).items():
        if readers.products:
            weight = _store(matrix, bits, outputs_first=False, names=names)
            _replace_products(readers.products, weight)
        if readers.transposed or readers.lookups:
            weight = _store(matrix, bits, outputs_first=True, names=names)
            _replace_products(readers.transposed, weight)
            _replace_lookups(readers.lookups, weight, names)
        counts["MatMul"] += len(readers.products) + len(readers.transposed)
        counts["Gather"] += len(readers.lookups)
        for use in matrix.uses():
            if use.node.op_type == "Transpose" and surgery.is_unread(use.node.outputs[0]):
                surgery.graph_of(use.node).remove(use.node, safe=True)
        surgery.drop_unread([matrix])
    if counts:
        model.opset_imports.setdefault(CONTRIBUTED, 1)
    return {name: count for name, count in sorted(counts.items()) if count}


@dataclass(frozen=True)
class _Stored:
    """A weight in blocks: its codes, scales and zero points, its numbers of inputs and outputs, and its bits."""

    values: tuple[ir.Value, ir.Value, ir.Value]
    inputs: int
    outputs: int
    bits: int


def _store(matrix: ir.Value, bits: int, *, outputs_first: bool, names: TensorNames) -> _Stored:
    values, graph = surgery.numbers(matrix), surgery.graph_of(matrix)
    packed = pack(values, bits, outputs_first=outputs_first)
    outputs, inputs = values.shape if outputs_first else values.shape[::-1]
    parts = {f"int{bits}": packed.codes, "scales": packed.scales, "zero_points": packed.zero_points}
    codes, scales, zero_points = (
        surgery.store(graph, names.free(f"{matrix.name}_{ending}"), part) for ending, part in parts.items()
    )
    return _Stored((codes, scales, zero_points), inputs, outputs, bits)


def _replace_products(nodes: list[ir.Node], weight: _Stored) -> None:
    sizes = {"K": weight.inputs, "N": weight.outputs, "bits": weight.bits, "block_size": BLOCK}
    for node in nodes:
        inputs = [node.inputs[0], *weight.values]
        numbers = {**sizes, "accuracy_level": matmul_nbits.BY_INTEGERS}
        surgery.replace(node, [surgery.contributed(matmul_nbits.OPERATOR, inputs, node, node.name or "", **numbers)])


def _replace_lookups(nodes: list[ir.Node], table: _Stored, names: TensorNames) -> None:
    """Put GatherBlockQuantized in the place of Gather nodes: MatMulNBits reads the same codes with an axis more."""
    import numpy as np

    if not nodes:
        return
    codes, scales, zero_points = table.values
    rows = np.array([table.outputs, -1], np.int64)
    shape = surgery.store(surgery.graph_of(codes), names.free(f"{codes.name}_rows"), rows)
    numbers = {"bits": table.bits, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
    for node in nodes:
        flat = surgery.node("Reshape", [codes, shape], names.free(f"{codes.name}_flat"), f"{node.name}_flat")
        inputs = [flat.outputs[0], node.inputs[1], scales, zero_points]
        surgery.replace(node, [flat, surgery.contributed(LOOKUP, inputs, node, node.name or "", **numbers)])


@dataclass
class Readers:
    """The nodes that read a stored matrix, and that can read it in blocks.

    `products` multiply with the matrix, which is [inputs, outputs]. `transposed` multiply with its transpose, as an
    output layer does that is tied to a table of words. `lookups` read rows.
    """

    products: list[ir.Node] = field(default_factory=list)
    transposed: list[ir.Node] = field(default_factory=list)
    lookups: list[ir.Node] = field(default_factory=list)


def readers_of(graph: ir.Graph, kept: Collection[str] = ()) -> dict[ir.Value, Readers]:
    """Return the stored float32 matrices of the main graph that can be stored in blocks, with their readers.

    The nodes named in `kept` are no such readers.
    """
    return {
        value: readers
        for value in graph.initializers.values()
        if _is_matrix(value) and (readers := _readers(value, kept)) != Readers()
    }


def _readers(matrix: ir.Value, kept: Collection[str]) -> Readers:
    rows, columns = surgery.tensor(matrix).shape.numpy()
    readers = Readers()
    for use in matrix.uses():
        node = use.node
        if node.graph is not matrix.graph or node.name in kept:
            continue  # a body reads the stored numbers
        if _multiplies(node, use.idx) and columns >= LEAST_OUTPUTS:
            readers.products.append(node)
        elif node.op_type == "Transpose" and rows >= LEAST_OUTPUTS:
            users = (each.node for each in node.outputs[0].uses() if _multiplies(each.node, each.idx))
            readers.transposed += [user for user in users if user.name not in kept]
        elif node.op_type == "Gather" and use.idx == 0 and not node.attributes.get_int("axis"):
            readers.lookups.append(node)
    if columns % _PAIR or not (readers.transposed or rows * columns >= embedding_tables.WORTH):
        readers.lookups.clear()  # a small table costs less than the nodes that would read it
    return readers


def _multiplies(node: ir.Node, index: int) -> bool:
    return node.op_type == "MatMul" and index == 1


def _is_matrix(value: ir.Value) -> bool:
    import onnx_ir as ir

    stored = surgery.tensor(value)
    return stored.dtype == ir.DataType.FLOAT and len(stored.shape) == _MATRIX


@dataclass(frozen=True)
class Packed:
    """A weight of a layer with K inputs and N outputs, in blocks of `BLOCK` inputs."""

    codes: np.ndarray
    """uint8 [N, blocks, bytes of a block]; of two 4-bit numbers in a byte, the first has the lower four bits."""
    scales: np.ndarray
    """float32 [N, blocks]"""
    zero_points: np.ndarray
    """uint8 [N, bytes]; several 4-bit zero points are packed into bytes, as in `codes`."""


def pack(weight: np.ndarray, bits: int, *, outputs_first: bool = False) -> Packed:
    """Return a float32 weight [K, N], or with `outputs_first` [N, K], with `bits` bits for each number.

    The weight is read a part at a time, because it may be mapped from a file.
    """
    import numpy as np

    outputs, inputs = weight.shape if outputs_first else weight.shape[::-1]
    step = max(1, _NUMBERS // inputs)
    parts = []
    for start in range(0, outputs, step):
        part = weight[start : start + step].T if outputs_first else weight[:, start : start + step]
        parts.append(_quantize(bits)(np.ascontiguousarray(part)))
    codes, scales, zero_points = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Packed(codes, scales, zero_points.reshape(outputs, -1))


@cache
def _quantize(bits: int) -> Callable[[np.ndarray], Any]:
    """Return ONNX Runtime's function that rounds a weight [K, N] to `bits` bits, each block between its extremes."""
    import logging

    level = logging.getLogger().level
    from onnxruntime.quantization import matmul_nbits_quantizer as library

    logging.getLogger().setLevel(level)  # the import lets every package of the process log what it does
    config = library.DefaultWeightOnlyQuantConfig(block_size=BLOCK, is_symmetric=False, bits=bits)
    quantize: Callable[[np.ndarray], Any] = library.DefaultWeightOnlyQuantizer(config).qbits_block_quant
    return quantize
