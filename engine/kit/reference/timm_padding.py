"""Constant padding: replaces "same" padding of convolutions, which is computed for each image, by constant widths."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference import timm_models

if TYPE_CHECKING:
    import torch


def fixed(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a loaded timm model in which convolutions with "same" padding get padding of constant widths.

    "Same" padding depends on the size of the image. Tracing a convolution with "same" padding writes a dozen operators
    into the graph, which compute the padding again for every batch; constant padding needs one operator.
    """
    import torch
    from timm.layers import Conv2dSame

    copied = copy.deepcopy(module)
    convolutions = {name: part for name, part in copied.named_modules() if type(part) is Conv2dSame}
    sizes: dict[str, tuple[int, int]] = {}

    def remember(name: str) -> Any:
        return lambda _, inputs: sizes.update({name: tuple(inputs[0].shape[-2:])})

    hooks = [part.register_forward_pre_hook(remember(name)) for name, part in convolutions.items()]
    with torch.inference_mode():
        copied(torch.from_numpy(timm_models.example(copied, 1)[checkpoints.IMAGES]))
    for hook in hooks:
        hook.remove()
    for name, size in sizes.items():
        parent, _, child = name.rpartition(".")
        setattr(copied.get_submodule(parent), child, _padded(convolutions[name], size))
    return copied


def _padded(convolution: Any, size: tuple[int, int]) -> torch.nn.Module:
    """Return a module that pads by constants and applies `convolution`, for inputs of `size`: height and width."""
    import torch
    from timm.layers import get_same_padding

    sides: list[int] = []
    for axis in (1, 0):  # torch names the sides of the last axis first
        kernel, stride, dilation = (getattr(convolution, name)[axis] for name in ("kernel_size", "stride", "dilation"))
        missing = get_same_padding(size[axis], kernel, stride, dilation)
        sides += [missing // 2, missing - missing // 2]
    plain = torch.nn.Conv2d(
        convolution.in_channels,
        convolution.out_channels,
        convolution.kernel_size,
        stride=convolution.stride,
        dilation=convolution.dilation,
        groups=convolution.groups,
        device="meta",
    )
    plain.weight, plain.bias = convolution.weight, convolution.bias
    return torch.nn.Sequential(torch.nn.ZeroPad2d(tuple(sides)), plain).eval()
