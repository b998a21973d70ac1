"""Fields that a recipe may have and that no step supports yet. A recipe with an unsupported field is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from engine import tasks
from engine.recipe.schema import ModelSection, Recipe
from engine.runtimes import recipes, registry
from engine.runtimes.support import Unsupported
from engine.tasks import Generates

if TYPE_CHECKING:
    from engine.recipe.load import LoadedRecipe

ON_A_CPU = "device: cpu with runtime: onnxruntime"


def _rivals(recipe: Recipe) -> bool:
    """Tell whether `bench.against` names a rival in a precision that the rival's runtime does not offer."""
    against = recipe.bench.against if recipe.bench else ()
    return any(rival.precision not in registry.find(rival.runtime).rival_precisions for rival in against)


def off_the_cpu(recipe: Recipe) -> bool:
    """Tell whether the recipe's target cannot generate text. Only ONNX Runtime's CPU provider can generate text."""
    return not registry.of(recipe).generates(recipe.target)


def _generating() -> str:
    return f"task: {tasks.either(lambda task: task.generates)}, or leave it out"


def _generating_there(recipe: Recipe) -> str:
    return f"generating text {where(recipe)}"


def where(recipe: Recipe) -> str:
    """Return the words for the recipe's target in errors: "on a GPU" or, for a target on a CPU, "with" its runtime."""
    return "on a GPU" if recipe.target.device != "cpu" else f"with {recipe.target.runtime}"


def continues(model: ModelSection) -> bool:
    """Tell whether a model may continue texts, as far as the recipe says its task."""
    if model.is_onnx_file:
        return False
    return model.task is None or tasks.find(model.task).generates is Generates.CONTINUES


def _continuing() -> str:
    names = tasks.either(lambda task: task.generates is Generates.CONTINUES)
    return f"it with task: {names}, or take `validate.perplexity` out"


def _of_images() -> str:
    names = tasks.either(lambda task: task.takes_images)
    return f"a model of images: task: {names}; or an .onnx file that takes images"


def _is_of_both(model: ModelSection) -> bool:
    task = tasks.known(model.task)
    return task is not None and task.takes_images and task.takes_texts


Row = tuple[str, Callable[[Recipe], object], str | Callable[[Recipe], str], str | Callable[[], str]]
# The columns: the field, when the field is an error, the unsupported feature, and what works instead. Whoever makes a
# step support a field removes the field's row.
_ROWS: tuple[Row, ...] = (
    ("model.task", lambda r: tasks.generates(r.model.task) and off_the_cpu(r), _generating_there, ON_A_CPU),
    ("model.trust_remote_code", lambda r: r.model.trust_remote_code, "running a model's own code",
     "a model of an architecture that transformers has"),
    ("model.prompt", lambda r: r.model.prompt is not None and r.model.is_onnx_file, "a prompt of an .onnx file",
     "a model of sentence-transformers as the source"),
    ("model.truncate_dim", lambda r: r.model.truncate_dim is not None and r.model.is_onnx_file,
     "a shorter embedding of an .onnx file", "a model of sentence-transformers as the source"),
    ("graphs", lambda r: r.graphs, "several graphs", "a model of one graph"),
    ("generate.num_beams", lambda r: r.generate.get("num_beams", 1) > 1, "beam search",
     "num_beams: 1: the likeliest token each time"),
    ("generate", lambda r: r.generate and off_the_cpu(r), _generating_there, ON_A_CPU),
    ("generate", lambda r: r.generate and r.model.task is not None and not tasks.generates(r.model.task),
     "generating text with this task", _generating),
    ("validate.perplexity", lambda r: r.validation.perplexity and r.model.is_onnx_file,
     "the perplexity of an .onnx file", "a checkpoint as the source, or take `validate.perplexity` out"),
    ("validate.perplexity", lambda r: r.validation.perplexity and not continues(r.model),
     "the perplexity of a model that does not continue texts", _continuing),
    ("preprocess", lambda r: r.preprocess and r.images is None, "preparing images for this model", _of_images),
    ("postprocess", lambda r: r.postprocess and not r.model.is_onnx_file, "another answer of a checkpoint",
     "a task, which has its own answer, or an .onnx file"),
    ("model.labels", lambda r: r.model.labels and not r.model.is_onnx_file and not _is_of_both(r.model),
     "other names of a checkpoint's classes", "id2label in the checkpoint's config.json"),
    ("bench.via", lambda r: recipes.served(r) and tasks.generates(r.model.task),
     "measuring generated text through a server", "via: [in-process]"),
    ("bench.against", _rivals, "a rival in this precision", "precision: fp32, or for pytorch tf32, fp16 or bf16"),
)  # fmt: skip


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError at the first field that no step supports yet."""
    recipe = loaded.recipe
    for each in _unsupported(recipe):
        path = each.field.split(".")
        raise loaded.error(f"not supported yet: {each.what} (`{each.field}`)", *path, hint=f"use {each.instead}")


def _unsupported(recipe: Recipe) -> Iterator[Unsupported]:
    runtime = registry.of(recipe)
    for path, refuses, what, instead in _ROWS:
        if refuses(recipe):
            feature = what if isinstance(what, str) else what(recipe)
            yield Unsupported(path, feature, instead if isinstance(instead, str) else instead())
    yield from runtime.unsupported(recipe)
