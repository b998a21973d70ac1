"""timm models: the checkpoint of an image classifier as a torch module with named inputs and outputs."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference.model_loading import HeadOptions, quiet, seeded
from engine.recipe.image_input import Images
from engine.text import distribution, reasons

if TYPE_CHECKING:
    import numpy as np
    import torch

OUTPUT = "logits"
_OWN_SIZE = (3, 224, 224)
"""Channels, height and width where config.json has no `input_size`: the default of timm (`PretrainedCfg`)."""


def load(checkpoint: Path, task: str, images: Images, **head: Unpack[HeadOptions]) -> torch.nn.Module:
    """Return the model in fp32 and eval mode, from local safetensors only.

    The model takes `images`, float32 [batch, channels, size, size], or [batch, size, size, channels] where the layout
    is NHWC, and returns `logits` [batch, classes]. `module.input_specs` maps the input's name to its type and shape.

    Raises StepError where timm is missing, the weights do not fit the architecture, the model is no classifier, or the
    model cannot take images of the recipe's size.
    """
    if not tasks.find(task).timm:
        hint = f"task: {tasks.either(lambda task: task.timm)}"
        raise StepError(f"a model of timm classifies images: the task {task} is not supported for it", hint=hint)
    model = _created(checkpoint, images)
    _set_head(model, head.get("num_labels"), allowed=head.get("random_head", False))
    channels, *own = _input_size(checkpoint)
    sizes = list(images.size or own)
    module = _image_class()(model.eval(), channels, sizes, images.layout)
    _try(module, checkpoint, own)
    return module


def is_one(module: torch.nn.Module) -> bool:
    """Whether the loaded model is one of timm."""
    return checkpoints.IMAGES in module.input_names


def example(module: torch.nn.Module, batch: int) -> dict[str, np.ndarray]:
    """Return random images for a loaded model; the numbers are normally distributed, as in normalized images.

    They are drawn as float32, with half the memory of `synthetic.tensor`. The seed is the number of images.
    """
    import numpy as np

    generator = np.random.default_rng(batch)
    name = checkpoints.IMAGES
    return {name: generator.standard_normal((batch, *module.input_specs[name].shape[1:]), np.float32)}


def _created(checkpoint: Path, images: Images) -> Any:
    """Return timm's model with the checkpoint's weights, for images of the recipe's size."""
    timm = _timm()
    name = checkpoints.config(checkpoint).get("architecture")
    if not isinstance(name, str) or not timm.is_model(name):
        raise StepError(
            f"timm {timm.__version__} has no architecture {name!r}", hint="a newer timm may, or the name is mistyped"
        )
    size = list(images.size or _input_size(checkpoint)[1:])
    # An architecture for images of one size takes another size as an option, and timm then resamples its weights.
    is_fixed = checkpoints.timm_config(checkpoint).get("fixed_input_size")
    model = _weighted(checkpoint, name, {"img_size": size} if images.size and is_fixed else {})
    if getattr(model, "dynamic_img_size", False):
        # With `dynamic_img_size`, a model resamples weights for each batch. ONNX has no operator for that.
        return _weighted(checkpoint, name, {"img_size": size, "dynamic_img_size": False})
    return model


def _weighted(checkpoint: Path, name: str, options: dict[str, Any]) -> Any:
    """Return the timm model of the architecture `name` with the checkpoint's weights, in fp32.

    Raises StepError where the weights do not fit the architecture.
    """
    import timm
    import torch

    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            return timm.create_model(
                f"local-dir:{checkpoint}", pretrained=True, pretrained_cfg_overlay={"custom_load": False}, **options
            ).float()
    except Exception as error:  # timm, torch and safetensors each raise exceptions of their own
        raise StepError(
            f"the checkpoint's weights do not make a {name}"
            + (f" for images of the size {options['img_size']}" if options else ""),
            reasons.facts(error, without=f"{checkpoint}/"),
            "do config.json and the safetensors belong together, and to this version of timm?",
        ) from error


def _timm() -> Any:
    try:
        import timm
    except (ImportError, RuntimeError) as error:
        what = "a model of timm needs timm and torchvision"
        if isinstance(error, RuntimeError):  # torchvision raises it where its operators were built for another torch
            what = "timm cannot be imported: torchvision does not fit the installed torch"
        hint = f"{distribution.install('timm')}; for a torch without CUDA, torchvision from where that torch came from"
        raise StepError(what, reasons.facts(error), hint) from error
    return timm


def _set_head(model: Any, num_labels: int | None, *, allowed: bool) -> None:
    """Give the model a random head where its own head does not have the number of classes that the recipe names.

    Raises StepError where the recipe allows no random head.
    """
    classes = int(model.num_classes)
    if num_labels in (None, classes) and classes:
        return
    if num_labels is None or not allowed:
        raise StepError(
            f"the checkpoint's head has {classes} classes, but the recipe asks for {num_labels}"
            if classes
            else "the checkpoint has no head that classifies",
            hint="choose a checkpoint with a fitting head, or allow a random head with num_labels and "
            "random_head: true under model:",
        )
    with seeded():
        model.reset_classifier(num_labels)
    print(f"the head is random, as the recipe asks: {num_labels} classes")


def _input_size(checkpoint: Path) -> tuple[int, int, int]:
    """Return the channels, height and width of the images that the model was trained on, by config.json."""
    size = checkpoints.timm_config(checkpoint).get("input_size", _OWN_SIZE)
    if not isinstance(size, list | tuple) or len(size) != len(_OWN_SIZE) or not all(isinstance(n, int) for n in size):
        raise StepError("the input_size in config.json is not [channels, height, width]", [repr(size)[:80]])
    return (size[0], size[1], size[2])


def _try(module: torch.nn.Module, checkpoint: Path, own: list[int]) -> None:
    """Run the model on one image. Raises StepError where the model cannot take images of the recipe's size."""
    import torch

    try:
        with torch.inference_mode():
            answer = module(torch.from_numpy(example(module, 1)[checkpoints.IMAGES]))[0]
    except Exception as error:  # any layer may fail on an unusual size
        shape = " x ".join(map(str, module.input_specs[checkpoints.IMAGES].shape))
        raise StepError(
            f"{checkpoints.config(checkpoint)['architecture']} cannot take images of this size: {shape}",
            reasons.facts(error),
            f"its own size is {own[0]} x {own[1]}: leave preprocess.size out, or take a multiple of its patches",
        ) from error
    if answer.ndim != 2:  # noqa: PLR2004 - batch and classes
        raise StepError(f"the model answers {list(answer.shape)}: not one logit for each class")


@cache
def _image_class() -> Any:
    """Return the class `ImageModel`, defined in a function because importing torch is slow."""
    import torch

    class ImageModel(torch.nn.Module):  # type: ignore[misc]
        """A timm model that takes images in NCHW or NHWC layout and returns a tuple."""

        def __init__(self, model: Any, channels: int, sizes: list[int], layout: str) -> None:
            super().__init__()
            self.model = model
            self.last = layout == "NHWC"
            self.input_names, self.output_names = (checkpoints.IMAGES,), (OUTPUT,)
            shape = (*sizes, channels) if self.last else (channels, *sizes)
            self.input_specs = {checkpoints.IMAGES: Input(checkpoints.IMAGES, "float32", ("batch", *shape))}

        def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (self.model(images.permute(0, 3, 1, 2) if self.last else images),)

    return ImageModel


def with_constant_padding(module: torch.nn.Module) -> torch.nn.Module:
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
        copied(torch.from_numpy(example(copied, 1)[checkpoints.IMAGES]))
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
