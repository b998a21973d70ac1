"""Image inputs: names, types and shapes of what the graph of an image model takes, by the checkpoint's files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import tasks
from engine.errors import FieldError, StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable
from engine.kit.images import processors
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import export_ways

if TYPE_CHECKING:
    from engine.recipe.image_input import Images

PIXELS, MASK = "pixel_values", "pixel_mask"


def axes(checkpoint: Path, task_name: str, images: Images | None) -> dict[str, tuple[int | str, ...]]:
    """Return each input of a transformers model -> its extents or axis names; {} where only the loaded model tells."""
    task, config = tasks.find(task_name), checkpoints.config(checkpoint)
    if task.takes_images:
        return {name: spec.shape for name, spec in specs(checkpoint, task_name, images).items()}
    if task.embeds and export_ways.gives_embeddings(config, str(checkpoints.architecture(checkpoint))):
        return {name: spec.shape for name, spec in texts(config, ("batch",)).items()}
    return {name: tuple(shape) for name, shape in checkpoints.axes(checkpoint).items()}


def specs(checkpoint: Path, task_name: str, images: Images | None) -> dict[str, Input]:
    """Return the inputs of a transformers model of images, in the order of the graph.

    `pixel_values` [batch, channels, height, width], float32; `pixel_mask` [batch, height, width] for a family with
    padded images; `input_ids` [batch, texts, sequence] and perhaps `attention_mask` for a task that also takes texts.
    Raises StepError for a family that is refused, for images of an unknown size, and for the layout NHWC.
    """
    config = checkpoints.config(checkpoint)
    way, named = export_ways.of(config, images=True), checkpoints.architecture(checkpoint) or config.get("model_type")
    if way.refused or not checkpoints.takes_images(config):
        what = f"{named} takes {way.refused or 'no images'}: it cannot be built for {task_name}"
        raise StepError(what, [way.why] if way.refused else [], exportable.own_export(config, str(checkpoint)))
    if images is not None and images.layout != "NCHW":
        what = f"models of transformers take images as NCHW, not as {images.layout}"
        raise FieldError(what, ("preprocess", "layout"), hint="leave layout out")
    size = sides(checkpoint, images)
    if size is None:
        raise StepError(
            f"{named} takes images of one size, and nothing says which",
            [way.why, "the image processor gives images of several sizes, and config.json has no image_size"],
            "say the size: `preprocess: {size: {height: 800, width: 800}}`",
        )
    inputs = {PIXELS: Input(PIXELS, "float32", ("batch", _vision(config).get("num_channels", 3), *size))}
    if way.pixel_mask:
        inputs[MASK] = Input(MASK, "int64", ("batch", *size))
    return {**inputs, **(texts(config, ("batch", "texts")) if tasks.find(task_name).takes_texts else {})}


def sides(checkpoint: Path, images: Images | None) -> tuple[int | str, int | str] | None:
    """Return the height and the width of the images: numbers, or names of axes; None where one size is not known."""
    config = checkpoints.config(checkpoint)
    size = (images and images.size) or _processed(checkpoint)
    is_free = export_ways.of(config, images=True).free
    return size or (("height", "width") if is_free else native_size(config))


def texts(config: Mapping[str, Any], rows: tuple[str, ...]) -> dict[str, Input]:
    """Return the inputs of a tower of texts, int64 [*rows, sequence].

    A tower that was trained with padding to the full length has a fixed sequence, and no mask.
    """
    fixed = export_ways.of(config, images=False).padded_texts
    length = checkpoints.text_config(config).get("max_position_embeddings", 64) if fixed else "sequence"
    names = checkpoints.token_inputs(0)[: 1 if fixed else None]
    return {name: Input(name, "int64", (*rows, length)) for name in names}


def native_size(config: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the height and the width that the config names; None where it names none."""
    size = _vision(config).get("image_size")
    return (size[0], size[1]) if isinstance(size, list) else _sides(size)


def _vision(config: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = config.get("vision_config")
    return nested if isinstance(nested, dict) else config


def _processed(checkpoint: Path) -> tuple[int, int] | None:
    """Return the one height and width of the images that the checkpoint's image processor gives; None for several."""
    settings = processors.file_of(checkpoint)
    if settings.get("crop_size") is not None and settings.get("do_center_crop"):
        return _sides(settings["crop_size"])
    if not settings.get("do_resize", True) or settings.get("keep_aspect_ratio"):
        return None
    size = settings.get("size")
    # ConvNeXt's processor crops to a square, or above 384 pixels resizes to a square.
    return _sides(
        size["shortest_edge"] if "crop_pct" in settings and isinstance(size, dict) and "shortest_edge" in size else size
    )


def _sides(size: Any) -> tuple[int, int] | None:
    height, width = (size.get("height"), size.get("width")) if isinstance(size, dict) else (size, size)
    return (height, width) if isinstance(height, int) and isinstance(width, int) else None
