"""Constant parts: pieces of image models that no exporter writes well are replaced by others that compute the same."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from engine.kit.reference.export_ways import Way

_POSITIONS = "interpolate_pos_encoding"


def replaced(module: Any, way: Way, inputs: tuple[Any, ...], *, fixed: bool) -> Any:
    """Return a copy of the module to trace; the module itself where nothing is replaced.

    For images of one size (`fixed`), positions that the model interpolates anew in each call, and the widths of adaptive pooling,
    are constants. One call on `inputs` tells them.
    """
    import torch

    named = dict(module.named_modules()) if fixed else {}
    pools = [name for name, part in named.items() if type(part) is torch.nn.AdaptiveAvgPool2d and _widens(part)]
    positions = [name for name, part in named.items() if hasattr(part, _POSITIONS)]
    unfolding = [name for name, part in module.named_modules() if way.unfolds and hasattr(part, "unfolding")]
    if not (pools or positions or unfolding):
        return module
    copied = copy.deepcopy(module)
    parts = {name: copied.get_submodule(name) for name in (*pools, *positions, *unfolding)}
    for name in positions:
        setattr(parts[name], _POSITIONS, _remembering(getattr(parts[name], _POSITIONS)))
    hooks = [parts[name].register_forward_hook(_remember_shape) for name in pools]
    with torch.inference_mode():
        copied(*inputs)
    for hook in hooks:
        hook.remove()
    for name in pools:
        parent, _, child = name.rpartition(".")
        setattr(copied.get_submodule(parent), child, _pooling(parts[name]))
    for name in unfolding:
        parts[name].unfolding, parts[name].folding = (partial(each, parts[name]) for each in (_unfolded, _folded))
    return copied


def _widens(pool: Any) -> bool:
    """Whether a pooling gives more than one number of each channel; exporters write the mean of all as one operator."""
    return pool.output_size not in (1, (1, 1))


def _remembering(interpolate: Any) -> Any:
    """Return a function that calls `interpolate` once, and returns the same tensor from then on."""
    answers: list[Any] = []

    def constant(*arguments: Any, **options: Any) -> Any:
        if not answers:
            answers.append(interpolate(*arguments, **options).clone())
        return answers[0]

    return constant


def _remember_shape(pool: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pool.shapes = tuple(inputs[0].shape[-2:]), tuple(output.shape[-2:])


def _pooling(pool: Any) -> Any:
    """Return a module that pools as `pool` did, by a product with a constant matrix along each axis."""
    import torch

    class Pooling(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            rows, columns = (_means(*sizes) for sizes in zip(*pool.shapes, strict=True))
            self.register_buffer("rows", rows)
            self.register_buffer("columns", columns.T.contiguous())

        def forward(self, maps: torch.Tensor) -> torch.Tensor:
            return self.rows @ maps @ self.columns

    return Pooling()


def _means(size: int, pooled: int) -> Any:
    """Return the matrix [pooled, size] of the means that adaptive pooling takes along one axis."""
    import torch

    matrix = torch.zeros(pooled, size)
    for index in range(pooled):
        first, last = index * size // pooled, -(-(index + 1) * size // pooled)
        matrix[index, first:last] = 1 / (last - first)
    return matrix


def _unfolded(layer: Any, maps: Any) -> tuple[Any, tuple[int, int]]:
    """Return the patches [batch, channels, pixels of a patch, patches] of feature maps, as MobileViTV2's `unfolding`."""
    batch, channels, height, width = maps.shape
    rows, columns = layer.patch_height, layer.patch_width
    split = maps.reshape(batch, channels, height // rows, rows, width // columns, columns)
    return split.permute(0, 1, 3, 5, 2, 4).reshape(batch, channels, rows * columns, -1), (height, width)


def _folded(layer: Any, patches: Any, output_size: tuple[int, int]) -> Any:
    """Return the feature maps that `_unfolded` turned into patches."""
    batch, channels = patches.shape[:2]
    (height, width), rows, columns = output_size, layer.patch_height, layer.patch_width
    split = patches.reshape(batch, channels, rows, columns, height // rows, width // columns)
    return split.permute(0, 1, 4, 2, 5, 3).reshape(batch, channels, height, width)
