"""Streamed weights: PyTorch's exporter writes a graph alone, and weights go one at a time from tensors to a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import foreign_functions, mapped_weights

if TYPE_CHECKING:
    import onnx
    import torch

_CHUNK = 16 << 20
"""The number of bytes of a weight that are copied at once."""


@contextlib.contextmanager
def apart() -> Iterator[dict[str, torch.Tensor]]:
    """Let the TorchScript exporter leave out large weights; the yielded mapping gets the weights by name.

    An initializer of a weight that was left out has no elements, until `put_back` adds the weight. The exporter's shape
    inference gets no numbers of large weights either, because it holds a copy of each weight that the graph transposes.
    """
    import torch

    weights: dict[str, torch.Tensor] = {}

    def without_large(infer: Callable[..., Any]) -> Callable[..., Any]:
        def infer_shapes(graph: Any, tensors: dict[str, torch.Tensor], *rest: Any) -> Any:
            # Shapes depend on integers, such as sizes and indices, not on the numbers of a large floating-point weight.
            large = {name for name, tensor in tensors.items() if _is_large(tensor) and tensor.is_floating_point()}
            small = {name: tensor for name, tensor in tensors.items() if name not in large}
            return infer(graph, small, *rest)

        return infer_shapes

    def leaving_out(export: Callable[..., Any]) -> Callable[..., Any]:
        def export_onnx(graph: Any, tensors: dict[str, torch.Tensor], *rest: Any) -> Any:
            large = {name: tensor for name, tensor in tensors.items() if _is_large(tensor)}
            weights.update(large)
            empty = {name: torch.empty(0, dtype=tensor.dtype) for name, tensor in large.items()}
            return export(graph, {**tensors, **empty}, *rest)

        return export_onnx

    with (
        foreign_functions.replaced(foreign_functions.EXPORT_ONNX, leaving_out),
        foreign_functions.replaced(foreign_functions.INFER_SHAPES, without_large),
    ):
        yield weights


def put_back(model: onnx.ModelProto, weights: dict[str, torch.Tensor]) -> None:
    """Add the weights that `apart` left out; within `mapped_weights.spilling`, they are written to a file."""
    for tensor in model.graph.initializer:
        weight = weights.pop(tensor.name, None)
        if weight is not None:
            tensor.dims[:] = weight.shape
            rows = max(1, _CHUNK * len(weight) // weight.nbytes)
            mapped_weights.store(tensor, map(_bytes, weight.detach().split(rows)))


def _bytes(rows: torch.Tensor) -> memoryview:
    """Return the bytes of some rows of a weight; the rows of a transposed weight are copied."""
    import torch

    values: memoryview = rows.contiguous().view(torch.uint8).reshape(-1).numpy().data
    return values


def _is_large(tensor: torch.Tensor) -> bool:
    return bool(tensor.nbytes >= mapped_weights.LEAST)
