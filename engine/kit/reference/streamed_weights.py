"""Streamed weights: PyTorch's exporter writes a graph alone, and weights go one at a time from tensors to a file."""

# The exporter itself holds a model three times: as tensors, as a message and as the message's bytes.

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.kit.onnx import mapped_weights

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
    inner: Any = torch._C  # noqa: SLF001  the exporter's steps have no public names
    kind, infer = inner.Graph, inner._jit_pass_onnx_graph_shape_type_inference  # noqa: SLF001
    original = kind._export_onnx  # noqa: SLF001

    def infer_shapes(graph: Any, tensors: dict[str, torch.Tensor], *rest: Any) -> Any:
        # Shapes depend on integers, such as sizes and indices, not on the numbers of a large floating-point weight.
        large = {name for name, tensor in tensors.items() if _is_large(tensor) and tensor.is_floating_point()}
        small = {name: tensor for name, tensor in tensors.items() if name not in large}
        return infer(graph, small, *rest)

    def export_onnx(graph: Any, tensors: dict[str, torch.Tensor], *rest: Any) -> Any:
        large = {name: tensor for name, tensor in tensors.items() if _is_large(tensor)}
        weights.update(large)
        empty = {name: torch.empty(0, dtype=tensor.dtype) for name, tensor in large.items()}
        return original(graph, {**tensors, **empty}, *rest)

    kind._export_onnx = export_onnx  # noqa: SLF001
    inner._jit_pass_onnx_graph_shape_type_inference = infer_shapes  # noqa: SLF001
    try:
        yield weights
    finally:
        kind._export_onnx = original  # noqa: SLF001
        inner._jit_pass_onnx_graph_shape_type_inference = infer  # noqa: SLF001


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
