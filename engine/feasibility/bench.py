"""Bench: refuses lengths of samples that the model or the samples lack, and rivals that cannot be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine import tasks
from engine.gpus import AMPERE, called
from engine.recipe.fields import OF_SAMPLES
from engine.runtimes import axes, recipes, registry

if TYPE_CHECKING:
    from engine.errors import RecipeError
    from engine.feasibility.facts import ModelFacts
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.values import Rival

_TOKENS = "input_ids"
_TEXTS = ".jsonl"


def check(loaded: LoadedRecipe) -> None:
    """Raise RecipeError for lengths of samples without texts, of a model without texts, or through a server."""
    bench = loaded.recipe.bench
    if bench is None:
        return
    shapes = list(_sample_shapes(loaded))
    if bench.samples is not None and not shapes:
        what = "no shape of `bench` stands for the lengths of these samples"
        hint = "add the shape {batch: 8, sequence: samples}, or leave the samples out"
        raise loaded.error(what, "bench", "samples", hint=hint)
    for path, _ in shapes:
        uri = loaded.recipe.bench_samples
        if uri is None:
            what = "the recipe names no samples whose lengths could be measured"
            raise loaded.error(what, *path, hint="name texts: bench: {samples: samples.jsonl}, or validate.samples")
        if not uri.endswith(_TEXTS):
            what = "only samples of texts have lengths, and these samples are tensors"
            facts = [f"the samples: {uri.rpartition('/')[2]}"]
            raise loaded.error(what, *path, facts=facts, hint="name texts: bench: {samples: samples.jsonl}")
        if recipes.served(loaded.recipe):
            what = "not supported yet: measuring the lengths of samples through a server"
            raise loaded.error(what, "bench", "via", hint="use via: [in-process], in a recipe of its own if need be")
        if loaded.recipe.model.takes_images:
            raise _no_text(loaded, path)
        _refuse_task(loaded, path, loaded.recipe.model.task)


def check_model(loaded: LoadedRecipe, facts: ModelFacts) -> None:
    """Raise RecipeError where lengths of samples are not those of the second axis of `input_ids`, or it is fixed."""
    for path, key in _sample_shapes(loaded):
        _refuse_task(loaded, path, loaded.recipe.model.task or facts.task)
        if not facts.axes:
            continue
        tokens = facts.axes.get(_TOKENS, ())[1:2]
        if not tokens:
            raise _no_text(loaded, path)
        if isinstance(tokens[0], int):
            what = f"the model fixes the number of tokens at {tokens[0]}, so every sample is padded to {tokens[0]}"
            hint = "leave the shape out, or export the model with an axis of any size"
            raise loaded.error(what, *path, hint=hint)
        axis = next(axis for _, axis, _ in axes.located({key: 1}, facts.axes))
        if axis is None:
            continue  # `shapes` says that the model has no such axis
        if axis != tokens[0]:
            what = f"`{key}` is not the axis of tokens, and samples differ in their number of tokens"
            raise loaded.error(what, *path, hint=f"write {axes.as_key(tokens[0])}: {OF_SAMPLES}")


def _sample_shapes(loaded: LoadedRecipe) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path in the recipe, and the axis, of each shape that stands for the lengths of samples."""
    for index, shape in enumerate(loaded.recipe.bench.shapes if loaded.recipe.bench else ()):
        if shape.samples is not None:
            yield ("bench", "shapes", index, axes.input_of(shape.samples) or shape.samples), shape.samples


def _refuse_task(loaded: LoadedRecipe, path: tuple[str | int, ...], task: str | None) -> None:
    if task is None:
        return
    if tasks.generates(task):
        what = f"not supported yet: measuring the lengths of samples of a model for {task}"
        raise loaded.error(what, *path, hint="name a number of tokens: {batch: 1, sequence: 128}")
    known = tasks.known(task)
    if known is not None and (known.takes_images or not known.takes_texts):
        raise _no_text(loaded, path)


def _no_text(loaded: LoadedRecipe, path: tuple[str | int, ...]) -> RecipeError:
    what = "the model takes no tokens, so its samples have no lengths"
    return loaded.error(what, *path, hint="name a number in place of samples")


def check_rivals(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a rival in TF32 without tensor cores for TF32, and for a compilation that cannot be had.

    `devices` are the GPUs of the recipe, none for a CPU.
    """
    bench = loaded.recipe.bench
    on_gpus = () if registry.of(loaded.recipe).runs_on_cpu(loaded.recipe.target) else devices
    for index, rival in enumerate(bench.against if bench else ()):
        path = ("bench", "against", index)
        without = [gpu for gpu in on_gpus if "tf32" not in gpu.dtypes]
        if rival.precision == "tf32" and (without or not on_gpus):
            what = f"{called(without) if without else 'a cpu'} has no TF32 for {rival.name}"
            facts = [f"TF32 is a format of NVIDIA's tensor cores, and came with Ampere (SM{AMPERE})"]
            raise loaded.error(what, *path, "precision", facts=facts, hint="use precision: fp32 for this rival")
        if rival.compile is not None and (refusal := _compilation(loaded, rival, on_gpus)) is not None:
            raise loaded.error(refusal[0], *path, "compile", hint=refusal[1])


def _compilation(loaded: LoadedRecipe, rival: Rival, on_gpus: Sequence[Gpu]) -> tuple[str, str] | None:
    """Return why a rival cannot be compiled as the recipe says, and what to write instead; None if it can."""
    if rival.compile not in registry.find(rival.runtime).rival_compiles:
        able = registry.in_words(each for each in registry.runtimes().values() if rival.compile in each.rival_compiles)
        return f"{rival.runtime} has no torch.compile", f"leave compile out, or use runtime: {able}"
    if rival.compile == "reduce-overhead" and not on_gpus:
        return "on a cpu, reduce-overhead would measure what compile: default measures: it adds CUDA graphs", (
            "use compile: default"
        )
    if loaded.recipe.bench_samples is not None:
        return "each shape is compiled apart, and the lengths of samples are many shapes", (
            "name numbers in bench.shapes in place of samples, or leave compile out"
        )
    return None
