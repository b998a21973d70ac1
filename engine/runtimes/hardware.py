"""Hardware: the GPUs that the built model of a recipe runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine import gpus
from engine.gpus.hardware import Device, Driver, Hardware
from engine.runtimes import registry

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe


def required(recipe: Recipe) -> Hardware | None:
    """Return the GPUs that the recipe's model needs, with the distributions that run models on GPUs; None for a CPU.

    Raises UsageError for a GPU that the catalogue does not know.
    """
    runtime = registry.of(recipe)
    if candidates := runtime.candidates(recipe):
        needs = {name: required(recipe.as_run_by(name)) for name in candidates}
        drivers = tuple(
            Driver(runtime=name, tool=each.tool, version=each.version) for name, each in needs.items() if each
        )
        default = needs[candidates[0]]
        return default and default.model_copy(update={"drivers": drivers})
    tool = None if runtime.runs_on_cpu(recipe.target) else runtime.tool(recipe.target)
    return None if tool is None else on(recipe.target.devices, tool=tool, version=runtime.tool_version(recipe))


def on(names: Sequence[str], *, tool: str, version: str | None = None) -> Hardware:
    """Return the GPUs with the given names. Raises UsageError for a name that the catalogue does not know."""
    named = [gpus.find(name) for name in names]
    return Hardware(devices=tuple(Device(name=gpu.name, sm=gpu.sm) for gpu in named), tool=tool, version=version)
