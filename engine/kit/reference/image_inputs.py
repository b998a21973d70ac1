"""Image inputs: names, types and shapes of what the exported graph of an image model takes, by the checkpoint's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable, json_files
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import export_ways
from engine.kit.reference.export_ways import Way

if TYPE_CHECKING:
    from engine.recipe.image_input import Images

PIXELS, MASK = "pixel_values", "pixel_mask"
_CHANNELS = 3
Size = tuple[int | str, int | str]
"""A height and a width, each in pixels or the name of a free axis."""


def axes(checkpoint: Path, task_name: str, images: Images | None) -> dict[str, list[int | str]]:
    """Return the name of each input -> its extents or axis names, for a task of images or a tower of texts.

    The result is that of `checkpoint.axes` for any other model.
    """
    if checkpoints.kind(checkpoint) == "transformers":
        task, config = tasks.find(task_name), checkpoints.config(checkpoint)
        tower = export_ways.gives_embeddings(config, str(checkpoints.architecture(checkpoint)))
        if task.takes_images:
            return {name: list(spec.shape) for name, spec in specs(checkpoint, task_name, images).items()}
        if task.embeds and tower:
            return {name: list(spec.shape) for name, spec in texts(config, ("batch",)).items()}
    return checkpoints.axes(checkpoint)


def specs(checkpoint: Path, task_name: str, images: Images | None) -> dict[str, Input]:
    """Return the inputs of a transformers model of images, in the order of the graph.

    `pixel_values` [batch, channels, height, width], float32; `pixel_mask` [batch, height, width] for a family with
    padded images; `input_ids` [batch, texts, sequence] and perhaps `attention_mask` for a task that also takes texts.
    Raises StepError for a family that is refused, where the size of the images is not known, or where the recipe names
    another layout than NCHW.
    """
    config = checkpoints.config(checkpoint)
    way = export_ways.of(config, images=True)
    if way.refused:
        named = checkpoints.architecture(checkpoint) or config["model_type"]
        raise StepError(f"{named} takes {way.refused}, which is not supported", [way.why], exportable.OWN_EXPORT)
    if images is not None and images.layout != "NCHW":
        raise StepError(f"models of transformers take images as NCHW, not as {images.layout}", hint="leave layout out")
    size = _size(checkpoint, config, way, images)
    part = _vision(config)
    inputs = {PIXELS: Input(PIXELS, "float32", ("batch", part.get("num_channels", _CHANNELS), *size))}
    if way.pixel_mask:
        inputs[MASK] = Input(MASK, "int64", ("batch", *size))
    return {**inputs, **(texts(config, ("batch", "texts")) if tasks.find(task_name).takes_texts else {})}


def texts(config: Mapping[str, Any], rows: tuple[str, ...]) -> dict[str, Input]:
    """Return the inputs of a tower of texts, int64 [*rows, sequence]; a family that pads always has a fixed sequence.

    The mask is left out where the tower was trained without one.
    """
    fixed = export_ways.of(config, images=False).padded_texts
    length = checkpoints.text_config(config).get("max_position_embeddings", 64) if fixed else "sequence"
    names = checkpoints.token_inputs(0)[: 1 if fixed else None]
    return {name: Input(name, "int64", (*rows, length)) for name in names}


def native_size(config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the height and the width that the config names; None where it names none."""
    size = _vision(config).get("image_size")
    if isinstance(size, int):
        return (size, size)
    return (size[0], size[1]) if isinstance(size, list | tuple) and len(size) == 2 else None  # noqa: PLR2004 - height, width


def _vision(config: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = config.get("vision_config")
    return nested if isinstance(nested, dict) else config


def _size(checkpoint: Path, config: Mapping[str, Any], way: Way, images: Images | None) -> Size:
    """Return the size of the images: the recipe's, else the one to which the image processor brings all images.

    Where images keep sizes of their own, the axes are free for a family that allows it, else the config names the size.
    """
    size = (images and images.size) or _processed(checkpoint)
    if size is None and way.free:
        return ("height", "width")
    if (size := size or native_size(config)) is None:
        raise StepError(
            f"{checkpoints.architecture(checkpoint)} takes images of one size, and nothing says which",
            [way.why, "the image processor gives images of several sizes, and config.json has no image_size"],
            "say the size: `preprocess: {size: {height: 800, width: 800}}`",
        )
    return size


def _processed(checkpoint: Path) -> tuple[int, int] | None:
    """Return the one height and width of the images that the checkpoint's image processor gives; None for several."""
    settings = json_files.settings(checkpoint / "preprocessor_config.json")
    settings = settings or json_files.settings(checkpoint / "processor_config.json").get("image_processor") or {}
    crop, size = settings.get("crop_size"), settings.get("size")
    if crop is not None and settings.get("do_center_crop"):
        return _sides(crop)
    if not settings.get("do_resize", True) or settings.get("keep_aspect_ratio"):
        return None
    # ConvNeXt's processor crops to a square, or above 384 pixels resizes to a square.
    if isinstance(size, dict) and "crop_pct" in settings and "shortest_edge" in size:
        return _sides(size["shortest_edge"])
    return _sides(size)


def _sides(size: Any) -> tuple[int, int] | None:
    if isinstance(size, int):
        return (size, size)
    if isinstance(size, dict) and isinstance(size.get("height"), int) and isinstance(size.get("width"), int):
        return (size["height"], size["width"])
    return None
