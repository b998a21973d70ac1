"""Serving: checks `package.triton` against the profiles, and against the TensorRT that builds the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import gpus, tasks
from engine.feasibility import shapes
from engine.recipe.model_config import OF_A_PYTHON_MODEL
from engine.runtimes import registry, triton_images
from engine.runtimes.backends import WITHOUT_NUMBERS
from engine.runtimes.profiles import greatest
from engine.runtimes.triton_images import RECIPE_PATH, REPOSITORY
from engine.text import lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.feasibility.facts import Axes, ModelFacts
    from engine.recipe.load import LoadedRecipe
    from engine.runtimes.triton_images import ImageTag

_ORIN = 87
"""The SM of Jetson Orin modules."""
_SOURCE_OF_NUMBERS = "Triton refuses an empty `reshape` without batches: ValidateIOShape in model_config_utils.cc"
_SOURCE_OF_FLAVOURS = "Triton, release 2.41.0: https://github.com/triton-inference-server/server/releases/tag/v2.41.0"


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for an image, a max_batch_size or an override with which Triton would not load the package."""
    _image(loaded)
    # Triton loads no engine with a larger batch, and an ONNX model is validated only up to the profiles' largest.
    _refuse_larger(loaded, greatest(loaded.recipe.profiles).get("batch"))
    _threads(loaded)
    _layout(loaded)
    _padding(loaded)
    _answers(loaded)
    triton = loaded.recipe.package.triton
    if triton.model_extra or triton.models:
        from engine.feasibility import overrides  # a recipe without overrides does not wait for this import

        overrides.check(loaded)


def _image(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a name that is no image of Triton, or an image that does not load the built model."""
    name = loaded.recipe.package.triton.image
    if name is None:
        return
    tag = triton_images.read(name)
    if tag is None:
        hint = f'write the release, "24.05", or the whole name of the image or its mirror, as in {REPOSITORY}:24.05-py3'
        raise loaded.error(triton_images.not_triton(name), *RECIPE_PATH, hint=hint)
    _board(loaded, tag)
    registry.of(loaded.recipe).refuse_image(loaded, tag)


def _board(loaded: LoadedRecipe, tag: ImageTag) -> None:
    """Raise RecipeError for a Jetson with an image for servers, or another GPU with an image for Jetsons (`-igpu`)."""
    if not tag.release:
        return
    for name in loaded.recipe.target.devices:
        gpu = gpus.known(name)
        is_jetson = gpu is not None and gpu.sold == "jetson"
        if is_jetson == tag.for_jetsons or (gpu is not None and is_jetson and gpu.sm != _ORIN):
            continue  # no document says that Jetsons newer than Orin do not run images for servers
        what = f"the image {tag.tag} is {'for Jetsons' if tag.for_jetsons else 'for servers'}, and {name} is "
        what += "a Jetson" if is_jetson else "none"
        hint = f"use {tag.for_the_other_board}; or leave `image` out"
        raise loaded.error(what, *RECIPE_PATH, facts=[_SOURCE_OF_FLAVOURS], hint=hint)


def _threads(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a number of threads where no backend of Triton computes on a CPU with such a number."""
    if loaded.recipe.package.triton.threads is None:
        return
    runtime = registry.of(loaded.recipe)
    if loaded.recipe.target.device != "cpu" or runtime.threads_in_triton is None:
        raise loaded.error(
            "threads are of a model that Triton runs on a CPU", "package", "triton", "threads", hint="leave threads out"
        )


def _layout(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for a layout other than `ensemble` where the package cannot be one Python model.

    On a CPU, `auto` needs no runtime that can: where the built model cannot run in Python, the layout is `ensemble`.
    """
    recipe = loaded.recipe
    triton = recipe.package.triton
    if triton.layout == "ensemble":
        return
    runtime, task = registry.of(recipe), tasks.known(recipe.model.task)
    target = recipe.target
    if (triton.layout == "fused" or target.device != "cpu") and not runtime.runs_in_python_on(target):
        by = f" by provider: {target.provider}" if target.provider else ""
        what, hint = f"{runtime.name} on {target.device}{by}", "use runtime: onnxruntime, on a GPU with provider: cuda"
    elif not triton.tokenizer:
        what, hint = "a package without a tokenizer", "leave `tokenizer: false` out"
    elif task is not None and (not task.takes_only_texts or task.generates is not None):
        what, hint = f"a package for {task.name}", "leave `layout` out"
    elif triton.models:
        what, hint = "a package whose recipe has fields for models of its own", "leave `models` out"
    elif unread := sorted({*(triton.model_extra or {})} - OF_A_PYTHON_MODEL if triton.layout == "fused" else ()):
        what, hint = f"a package with {' and '.join(unread)}", f"leave `{'` and `'.join(unread)}` out"
    else:
        return
    what = f"layout: {triton.layout} is one Python model for text to answer, and this is {what}"
    raise loaded.error(what, "package", "triton", "layout", hint=f"{hint}, or use layout: ensemble")


def _padding(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for padding in a package that has no texts to pad, or no lengths to pad them to."""
    recipe = loaded.recipe
    triton, task = recipe.package.triton, tasks.known(recipe.model.task)
    if triton.padding == "none":
        return
    if not triton.tokenizer:
        what, hint = "a package without a tokenizer has no texts", "leave `tokenizer: false` out"
    elif task is not None and (not task.takes_only_texts or task.generates is not None):
        what, hint = f"a package for {task.name} does not pad texts", "leave `padding` out"
    elif not recipe.profiles:
        what, hint = "texts are padded to the sizes in the profiles, and the recipe has none", "add profiles"
    else:
        return
    raise loaded.error(f"padding: {triton.padding}: {what}", "package", "triton", "padding", hint=hint)


def _answers(loaded: LoadedRecipe, task: str | None = None) -> None:
    """Raise RecipeError for an option of answers that the package ignores; `task` is for a recipe without a task."""
    package, name = loaded.recipe.package, loaded.recipe.model.task or task
    task_known = tasks.known(name)
    for option in package.answers.model_dump(exclude_defaults=True):
        if task_known is not None and option not in task_known.answer_options:
            what, hint = f"a package for {task_known.name} has no {option}", f"leave {option} out"
        elif loaded.recipe.postprocess is not None:
            what = f"{option} is about the answers of a task, and `postprocess` names others"
            hint = f"leave {option} out" if option != "threshold" else "move threshold to `boxes` in `postprocess`"
        elif not (package.triton.postprocess and package.triton.tokenizer):
            what, hint = f"{option} is about answers, and the package makes none", "leave `postprocess: false` out"
        elif option == "doc_stride" and package.triton.layout != "fused":
            what, hint = "windows of a long context need one Python model", "use package.triton.layout: fused"
        else:
            continue
        raise loaded.error(what, "package", "answers", option, hint=hint, at_key=True)


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError for a max_batch_size above the largest batch, and for options and tensors of no use here."""
    _answers(loaded, facts.task)
    shapes_by_name = {**facts.axes, **{name: shape for name, (_, shape) in facts.outputs.items()}}
    if registry.of(loaded.recipe).loads_in_triton:
        _numbers(loaded, shapes_by_name)
        _empty(loaded, shapes_by_name)
    leading = next(iter(facts.axes.values()), ())[:1]  # the batch, whatever the model calls the axis
    if loaded.recipe.package.triton.max_batch_size and leading:
        _refuse_larger(loaded, greatest(shapes.profiles(loaded, facts)).get(str(leading[0])))


def _numbers(loaded: LoadedRecipe, shapes_by_name: Mapping[str, Axes | None]) -> None:
    """Raise RecipeError for a tensor without axes that Triton's backend does not serve: no requests are joined."""
    recipe, runtime = loaded.recipe, registry.of(loaded.recipe)
    name = next((name for name, shape in shapes_by_name.items() if shape == ()), None)
    if name is None or runtime.backend not in WITHOUT_NUMBERS:
        return
    stated = any(name in profile for profile in recipe.shape_values)
    at: tuple[str | int, ...] = ("profiles", 0, name) if stated else ("target", "runtime")
    on_gpu = ", provider: tensorrt" if recipe.target.device != "cpu" else ""
    hint = f"give `{name}` an axis of size 1 in the ONNX model; "
    hint += f"or use runtime: onnxruntime{on_gpu}, which serves it as [1]"
    what = f"Triton's {runtime.title} backend serves no tensor without axes, and `{name}` is one"
    raise loaded.error(what, *at, facts=[f"{name}: {lists.extents(())}", _SOURCE_OF_NUMBERS], hint=hint)


def _empty(loaded: LoadedRecipe, shapes_by_name: Mapping[str, Axes | None]) -> None:
    """Raise RecipeError for an input or output with an axis of size 0, which no configuration of Triton can have."""
    for name, shape in shapes_by_name.items():
        if 0 in (shape or ()):
            what = f"Triton serves no tensor without numbers, and `{name}` is one"
            hint = "leave the tensor out of the ONNX model"
            raise loaded.error(what, "model", "source", facts=[f"{name}: {lists.extents(shape or ())}"], hint=hint)


def _refuse_larger(loaded: LoadedRecipe, largest: int | None) -> None:
    """Raise RecipeError where Triton would send larger batches than `largest`, the largest batch of the profiles."""
    batch = loaded.recipe.package.triton.max_batch_size
    if largest is not None and batch is not None and batch > largest:
        what = f"Triton would send batches of {batch}, and the largest of the profiles is {largest}"
        hint = f"say max_batch_size: {largest}, or widen a profile"
        raise loaded.error(what, "package", "triton", "max_batch_size", hint=hint)
