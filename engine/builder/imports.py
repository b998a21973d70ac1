"""Imports: the error for a step that needs a Python package which cannot be imported."""

from __future__ import annotations

from engine.errors import StepError
from engine.runtimes import registry
from engine.text import distribution


def cannot_import(step: str, module: str, *why: str) -> StepError:
    """Return the error for a step whose import of `module` failed, with the command that installs the package."""
    name = distribution.of_module(module)
    extra = distribution.extra_with(name) or "cpu"
    return StepError(
        f"the step {step!r} needs {module!r}, which cannot be imported",
        why,
        f"install it: `{distribution.install(extra)}` (`recipe doctor` shows what is installed){_instead(name)}",
    )


def _instead(name: str) -> str:
    """Return the hint to name the default runtime, for a distribution that is only needed by another runtime."""
    from engine.recipe.schema import TargetSection

    default = TargetSection().runtime
    needed_by = [each.name for each in registry.runtimes().values() if each.targets and name in each.tools_for]
    return f"; or name `runtime: {default}`, which does without" if needed_by and default not in needed_by else ""
