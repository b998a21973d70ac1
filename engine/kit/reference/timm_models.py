"""timm: a checkpoint of an image classifier as a module with named tensors in and out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import distribution, tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import synthetic
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference.quiet import quiet
from engine.recipe.images import Images

if TYPE_CHECKING:
    import numpy as np
    import torch

OUTPUT = "logits"
_SEED = 20
"""Of a random head: it must be the same one in every step that loads the model."""
_OWN_SIZE = (3, 224, 224)
"""Channels, height and width where a checkpoint does not say: timm's own default (`PretrainedCfg.input_size`)."""


def load(
    checkpoint: Path, task: str, images: Images, *, num_labels: int | None = None, random_head: bool = False
) -> torch.nn.Module:
    """Return the model in fp32 and eval mode, from local safetensors only.

    It takes `images`, float32 [batch, channels, size, size], or [batch, size, size, channels] where the layout is
    NHWC, and returns `logits` [batch, classes]. `module.wanted` says so.

    Raises StepError where timm is missing, the weights do not make the architecture, it does not classify, or it
    cannot take images of that size.
    """
    if not tasks.find(task).by_timm:
        hint = f"task: {tasks.either(lambda each: each.by_timm)}"
        raise StepError(f"a model of timm classifies images; {task} is not supported of it", hint=hint)
    model = _created(checkpoint, images)
    _set_head(model, num_labels, allowed=random_head)
    channels, *own = _input_size(checkpoint)
    sizes = [images.size, images.size] if images.size else own
    module = _image_class()(model.eval(), channels, sizes, images.layout)
    _try(module, checkpoint, own)
    return module


def example(module: torch.nn.Module, batch: int) -> dict[str, np.ndarray]:
    """Return seeded made-up images for a loaded model: normal numbers, as images are once they are normalized."""
    import numpy as np

    generator = np.random.default_rng(batch)
    return {
        checkpoints.IMAGES: synthetic.float32_tensor(generator, (batch, *module.wanted[checkpoints.IMAGES].shape[1:]))
    }


def _created(checkpoint: Path, images: Images) -> Any:
    timm = _timm()
    settings = checkpoints.config(checkpoint)
    name = settings.get("architecture")
    if not isinstance(name, str) or not timm.is_model(name):
        raise StepError(
            f"timm {timm.__version__} has no architecture {name!r}", hint="a newer timm may, or the name is mistyped"
        )
    told = settings.get("pretrained_cfg", settings)
    size = [images.size, images.size] if images.size else list(_input_size(checkpoint)[1:])
    # Only where an architecture is made for one size must it be told another: its weights are then resampled.
    model = _weighted(checkpoint, name, {"img_size": size} if images.size and told.get("fixed_input_size") else {})
    if getattr(model, "dynamic_img_size", False):
        # It would resample them for each batch, which ONNX has no operator for; here they are, once and for all.
        return _weighted(checkpoint, name, {"img_size": size, "dynamic_img_size": False})
    return model


def _weighted(checkpoint: Path, name: str, options: dict[str, Any]) -> Any:
    """Return the architecture with the checkpoint's weights, fp32. Raises StepError where they do not fit."""
    import timm
    import torch

    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            return timm.create_model(
                f"local-dir:{checkpoint}", pretrained=True, pretrained_cfg_overlay={"custom_load": False}, **options
            ).float()
    except Exception as error:  # timm, torch and safetensors each raise their own
        facts = [line.strip() for line in str(error).replace(f"{checkpoint}/", "").splitlines() if line.strip()]
        raise StepError(
            f"the checkpoint's weights do not make a {name}"
            + (f" for images of the size {options['img_size']}" if options else ""),
            facts[:8] or [type(error).__name__],
            "do config.json and the safetensors belong together, and to this version of timm?",
        ) from error


def _timm() -> Any:
    try:
        import timm
    except ImportError as error:
        raise StepError("a model of timm needs timm and torchvision", [str(error)], _INSTALL) from error
    except RuntimeError as error:  # torchvision's, where its operators are built for another torch
        raise StepError(
            "timm cannot be imported: torchvision does not fit the installed torch", [str(error)], _INSTALL
        ) from error
    return timm


_INSTALL = f"{distribution.install('timm')}; for a torch without CUDA, torchvision from where that torch came from"


def _set_head(model: Any, num_labels: int | None, *, allowed: bool) -> None:
    """Give the model a random head where the recipe asks for it. Raises StepError where it would need one."""
    import torch

    classes = int(model.num_classes)
    if num_labels in (None, classes) and classes:
        return
    if num_labels is None or not allowed:
        raise StepError(
            f"the checkpoint's head tells {classes} classes apart, the recipe {num_labels}"
            if classes
            else "the checkpoint has no head that classifies",
            hint="choose a checkpoint that has one, or allow a random head with num_labels and random_head: true "
            "under model:",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        model.reset_classifier(num_labels)
    print(f"the head is random, as the recipe asks: {num_labels} classes")


def _input_size(checkpoint: Path) -> tuple[int, int, int]:
    """Return channels, height and width as the checkpoint has them."""
    settings = checkpoints.config(checkpoint)
    size = settings.get("pretrained_cfg", settings).get("input_size", _OWN_SIZE)
    if not isinstance(size, list | tuple) or len(size) != len(_OWN_SIZE) or not all(isinstance(n, int) for n in size):
        raise StepError("the input_size in config.json is not [channels, height, width]", [repr(size)[:80]])
    return (size[0], size[1], size[2])


def _try(module: torch.nn.Module, checkpoint: Path, own: list[int]) -> None:
    """Run one image. Raises StepError where the model cannot take it."""
    import torch

    try:
        with torch.inference_mode():
            answer = module(torch.from_numpy(example(module, 1)[checkpoints.IMAGES]))[0]
    except Exception as error:  # any layer may find the size odd
        shape = " x ".join(map(str, module.wanted[checkpoints.IMAGES].shape))
        raise StepError(
            f"{checkpoints.config(checkpoint)['architecture']} cannot take images of this size: {shape}",
            [str(error).strip().splitlines()[0]],
            f"its own size is {own[0]} x {own[1]}: leave preprocess.size out, or take a multiple of its patches",
        ) from error
    if answer.ndim != 2:  # noqa: PLR2004 - batch and classes
        raise StepError(f"the model answers {list(answer.shape)}: that is no logit for each class")


@cache
def _image_class() -> Any:
    """Return the class of loaded models; made late because its base is torch's."""
    import torch

    class ImageModel(torch.nn.Module):  # type: ignore[misc]
        """A model of timm that takes images in either layout and returns a tuple."""

        def __init__(self, model: Any, channels: int, sizes: list[int], layout: str) -> None:
            super().__init__()
            self.model = model
            self.last = layout == "NHWC"
            self.input_names, self.output_names = (checkpoints.IMAGES,), (OUTPUT,)
            shape = (*sizes, channels) if self.last else (channels, *sizes)
            self.wanted = {checkpoints.IMAGES: Input(checkpoints.IMAGES, "float32", ("batch", *shape))}

        def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (self.model(images.permute(0, 3, 1, 2) if self.last else images),)

    return ImageModel
