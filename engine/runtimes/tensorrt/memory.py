"""Forecast of a model's memory at its largest shapes: weights, and the tensors that exist at the same time."""

# The forecast is too high where a builder fuses layers: their inner tensors are never written. The workspace of
# kernels is not counted.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kit.onnx import mapped_weights, onnx_files
from engine.runtimes import axes
from engine.text import sizes

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Forecast:
    """The number of bytes that a model needs for its weights and its activations.

    `unknown` is the number of tensors whose shape the graph lacks; the bytes of these tensors are left out.
    """

    weights: int
    activations: int
    """The largest number of bytes of tensors that exist at the same time."""
    unknown: int
    at: Mapping[str, int]
    """The size of each axis for which the memory is forecast."""

    @property
    def total(self) -> int:
        """The number of bytes of the weights and the activations together."""
        return self.weights + self.activations

    def __str__(self) -> str:
        axes = ", ".join(f"{axis} {extent}" for axis, extent in sorted(self.at.items()))
        weights, activations = sizes.binary(self.weights), sizes.binary(self.activations)
        text = f"forecast: {weights} of weights and up to {activations} of activations"
        text += f" at {axes}" if axes else ""
        return text + (f"; {self.unknown} tensors of unknown shape not counted" if self.unknown else "")


def forecast(model: onnx.ModelProto, extents: Mapping[str, int]) -> Forecast:
    """Return the memory that the main graph needs at the sizes `extents`; external data need not be loaded."""
    graph = model.graph
    weights = sum(mapped_weights.stored_bytes(tensor) for tensor in onnx_files.tensors(model))
    sizes = {value.name: _bytes(value, extents) for value in (*graph.input, *graph.value_info, *graph.output)}
    constant = {tensor.name for tensor in graph.initializer}
    last: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        last.update(dict.fromkeys(node.input, index))
    last.update({value.name: len(graph.node) for value in graph.output})
    alive = {value.name: sizes[value.name] or 0 for value in graph.input if value.name not in constant}
    most, unknown = sum(alive.values()), 0
    for index, node in enumerate(graph.node):
        outputs = [name for name in node.output if name]
        if all(name in constant for name in node.input if name):
            constant.update(outputs)  # the builder folds constants: count them as weights, which are already counted
            continue
        unknown += sum(sizes.get(name) is None for name in outputs)
        alive.update({name: sizes.get(name) or 0 for name in outputs})
        most = max(most, sum(alive.values()))
        for name in {*node.input, *outputs}:
            if last.get(name, index) <= index:
                alive.pop(name, None)
    return Forecast(weights, most, unknown, dict(extents))


def _bytes(value: onnx.ValueInfoProto, extents: Mapping[str, int]) -> int | None:
    import onnx

    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or not tensor.elem_type:
        return None
    dims = (dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim)
    sizes = [axes.extent(dim, extents) for dim in dims]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    return mapped_weights.stored_bytes(onnx.TensorProto(data_type=tensor.elem_type, dims=known))
