"""Images: whether image files can become the model's inputs, by the function that the build calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.builder.preflight.model import CheckedVariant
from engine.errors import FieldError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.images import settings
from engine.kit.onnx.onnx_files import Input
from engine.text import lists


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where nothing prepares image files for the model, or where `preprocess` does not suit it."""
    recipe, checkpoint = subject.recipe, subject.checkpoint
    if recipe.images is None or subject.facts is None or not subject.facts.axes:
        return
    sends_tensors = not recipe.package.triton.tokenizer and (recipe.validation.samples or "").endswith(".npz")
    if sends_tensors and not recipe.preprocess:
        return
    specs = _specs(subject)
    with (
        subject.at("model", "source"),
        as_checkpoint() if checkpoint is None else nullcontext(checkpoint) as place,
        redirect_stdout(None),
    ):
        prepared = settings.of_checkpoint(place, specs, recipe.preprocess)
        if prepared is not None:
            _refuse_other_sizes(subject, specs, prepared)
        if checkpoint is None and (prepared is None or len(specs.keys() - {prepared["mask"]}) > 1):
            inputs = [f"{each.name}: {each.dtype} {lists.extents(each.shape)}" for each in specs.values()]
            hint = "leave preprocess out: samples and requests are tensors then (validate: {samples: FILE.npz})"
            what = "image files become one input of one or three channels, and the model takes others"
            raise FieldError(what, ("preprocess",), inputs, hint)


@contextmanager
def as_checkpoint() -> Iterator[Path]:
    """Give a folder that looks like the checkpoint of an ONNX file, for code that asks which kind a checkpoint is."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "model.onnx").touch()
        yield Path(folder)


def _specs(subject: CheckedVariant) -> Mapping[str, Input]:
    """Return the inputs of the graph, with the size that the recipe says for a model of timm."""
    facts, images = subject.facts, subject.recipe.images
    assert facts is not None and images is not None  # noqa: PT018, S101
    shapes = {name: tuple(shape) for name, shape in facts.axes.items()}
    if subject.checkpoint is not None and checkpoints.kind(subject.checkpoint) == "timm":
        [(name, (batch, channels, *sides))] = shapes.items()
        sides = list(images.size or sides)
        shapes = {name: (batch, channels, *sides) if images.layout == "NCHW" else (batch, *sides, channels)}
    return {name: Input(name, facts.types.get(name, "float32"), shape) for name, shape in shapes.items()}


def _refuse_other_sizes(subject: CheckedVariant, specs: Mapping[str, Input], prepared: Mapping[str, Any]) -> None:
    """Raise FieldError where no profile has the size of the prepared images."""
    resize, axes = prepared["resize"] or {}, specs[prepared["output"]].shape[1:]
    sides = prepared["crop"] or [resize.get("height"), resize.get("width")]
    for axis, side in zip(axes[:-1] if prepared["last"] else axes[1:], sides, strict=True):
        ranges = [profile[axis] for profile in subject.recipe.profiles if isinstance(axis, str) and axis in profile]
        if side and ranges and not any(each.min <= side <= each.max for each in ranges):
            field = next((name for name in ("crop", "size") if name in subject.recipe.preprocess), "size")
            facts = [f"images get the {axis} {side}; the profiles have {', '.join(map(str, ranges))}"]
            what, hint = (
                f"no profile takes images of this {axis}",
                f"profiles: [{{{axis}: {side}, ...}}], or another size",
            )
            raise FieldError(what, ("preprocess", field), facts, hint)
