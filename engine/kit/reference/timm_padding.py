"""Padding that TensorFlow calls "same", made constant: in a graph for images of one size it is."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference import timm_models

if TYPE_CHECKING:
    import torch


def fixed(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a loaded model of timm in which convolutions with "same" padding pad by constants.

    How much they pad follows from the image's size. Traced as they stand, each would leave a dozen operators that
    reckon it out again for every batch.
    """
    import torch
    from timm.layers import Conv2dSame

    made = copy.deepcopy(module)
    found = {name: each for name, each in made.named_modules() if type(each) is Conv2dSame}
    sizes: dict[str, tuple[int, int]] = {}

    def remember(name: str) -> Any:
        return lambda _, given: sizes.update({name: tuple(given[0].shape[-2:])})

    hooks = [each.register_forward_pre_hook(remember(name)) for name, each in found.items()]
    with torch.inference_mode():
        made(torch.from_numpy(timm_models.example(made, 1)[checkpoints.IMAGES]))
    for hook in hooks:
        hook.remove()
    for name, size in sizes.items():
        parent, _, child = name.rpartition(".")
        setattr(made.get_submodule(parent), child, _padded(found[name], size))
    return made


def _padded(convolution: Any, size: tuple[int, int]) -> torch.nn.Module:
    """Return the same convolution for images of `size`, height and width."""
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
