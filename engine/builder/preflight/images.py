"""Images: whether image files can become the model's inputs and its outputs answers, by what the build calls."""

from __future__ import annotations

from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from engine import tasks
from engine.builder.preflight.model import CheckedVariant
from engine.errors import FieldError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.images import settings
from engine.kit.inputs import tensor_samples
from engine.kit.onnx.onnx_files import Input


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where nothing prepares image files for the model, or its task's answers are not its outputs."""
    recipe, checkpoint, facts = subject.recipe, subject.checkpoint, subject.facts
    if recipe.images is None or facts is None or (checkpoint is not None and checkpoints.kind(checkpoint) == "timm"):
        return  # only the loaded model tells the inputs of timm's graphs
    specs = {name: Input(name, facts.types.get(name, "float32"), tuple(shape)) for name, shape in facts.axes.items()}
    with TemporaryDirectory() as folder, redirect_stdout(None):
        if checkpoint is None:  # code asks a checkpoint for its kind
            (Path(folder) / "model.onnx").touch()
        with subject.at("model", "source"):
            _look_at_files(subject, checkpoint or Path(folder), specs)
        task = tasks.known(recipe.model.task)
        if checkpoint is None and task is not None and not task.classes and recipe.package.triton.postprocess:
            from engine.kit.triton.answers import by_task
            from engine.kit.triton.config import Signature

            outputs = {name: Input(name, kind, tuple(shape or ())) for name, (kind, shape) in facts.outputs.items()}
            with subject.at("model", "task"):
                by_task.of(task.name, Signature(specs, outputs), Path(folder), None)


def _look_at_files(subject: CheckedVariant, checkpoint: Path, specs: dict[str, Input]) -> None:
    """Raise StepError as the preparation does, and FieldError where `preprocess` is of no use, or no profile fits."""
    recipe, of_tensors = subject.recipe, (subject.recipe.validation.samples or "").endswith(".npz")
    if of_tensors and not recipe.package.triton.tokenizer and not recipe.preprocess:
        return
    prepared = settings.of_checkpoint(checkpoint, specs, recipe.preprocess)
    is_other = prepared is None or (len(specs) > 1 + ("pixel_mask" in specs) and not of_tensors)
    if recipe.model.is_onnx_file and recipe.preprocess and is_other:
        what = "image files become one input, of one or three channels, and the model takes others"
        hint = "give samples as tensors (validate: {samples: FILE.npz}); without images, leave preprocess out"
        raise FieldError(what, ("preprocess",), [*map(tensor_samples.describe, specs.values())], hint)
    if prepared is None or None not in prepared["shape"]:
        return
    field, resize = "crop" if "crop" in recipe.preprocess else "size", prepared["resize"] or {}
    shape, sides = specs[prepared["output"]].shape, prepared["crop"] or [resize.get("height"), resize.get("width")]
    for axis, side in zip(shape[1:-1] if prepared["last"] else shape[2:], sides, strict=True):
        known = [profile[str(axis)] for profile in recipe.profiles if str(axis) in profile]
        if side and known and not any(each.min <= side <= each.max for each in known):
            what = f"images get the {axis} {side}, and the profiles have {known[0].min} to {known[0].max}"
            raise FieldError(what, ("preprocess", field), hint="change the profile, or the size")
