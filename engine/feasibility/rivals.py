"""Rivals: refuses a precision or a compilation of `bench.against` that the target, the runtime or a shape rules out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.gpus import AMPERE, called
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.gpus import Gpu
    from engine.recipe.load import LoadedRecipe
    from engine.recipe.values import Rival


def check(loaded: LoadedRecipe, devices: Sequence[Gpu]) -> None:
    """Raise RecipeError for a rival in TF32 without tensor cores for TF32, and for a compilation that cannot be had.

    `devices` are the GPUs of the recipe, none for a CPU.
    """
    bench = loaded.recipe.bench
    on_gpus = () if registry.of(loaded.recipe).runs_on_cpu(loaded.recipe.target) else devices
    for index, rival in enumerate(bench.against if bench else ()):
        place = ("bench", "against", index)
        without = [gpu for gpu in on_gpus if "tf32" not in gpu.dtypes]
        if rival.precision == "tf32" and (without or not on_gpus):
            what = f"{called(without) if without else 'a cpu'} has no TF32 for {rival.name}"
            facts = [f"TF32 is a format of NVIDIA's tensor cores, and came with Ampere (SM{AMPERE})"]
            raise loaded.error(what, *place, "precision", facts=facts, hint="use precision: fp32 for this rival")
        if rival.compile is not None and (refusal := _compilation(loaded, rival, on_gpus)) is not None:
            raise loaded.error(refusal[0], *place, "compile", hint=refusal[1])


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
