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


@contextlib.contextmanager
def apart() -> Iterator[dict[str, torch.Tensor]]:
    """Let the TorchScript exporter leave out large weights; the yielded mapping gets the weights by name.

    An initializer of a weight that was left out has no elements, until `put_back` adds the weight.
    """
    import torch

    weights: dict[str, torch.Tensor] = {}
    kind: Any = torch._C.Graph  # noqa: SLF001  the exporter's last step has no public name
    original = kind._export_onnx  # noqa: SLF001

    def export_onnx(graph: Any, tensors: dict[str, torch.Tensor], *rest: Any) -> Any:
        large = {name: tensor for name, tensor in tensors.items() if tensor.nbytes >= mapped_weights.LEAST}
        weights.update(large)
        empty = {name: torch.empty(0, dtype=tensor.dtype) for name, tensor in large.items()}
        return original(graph, {**tensors, **empty}, *rest)

    kind._export_onnx = export_onnx  # noqa: SLF001
    try:
        yield weights
    finally:
        kind._export_onnx = original  # noqa: SLF001


def put_back(model: onnx.ModelProto, weights: dict[str, torch.Tensor]) -> None:
    """Add the weights that `apart` left out; within `mapped_weights.spilling`, they are written to a file."""
    import torch

    for tensor in model.graph.initializer:
        weight = weights.pop(tensor.name, None)
        if weight is not None:
            tensor.dims[:] = weight.shape
            values = weight.detach().contiguous().view(torch.uint8).reshape(-1).numpy()
            mapped_weights.store(tensor, values.data)
