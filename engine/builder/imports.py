"""Imports: the error for a step that needs a Python package which cannot be imported."""

from __future__ import annotations

from engine.errors import StepError
from engine.text import distribution


def cannot_import(step: str, module: str, *why: str) -> StepError:
    """Return the error for a step whose import of `module` failed, with the command that installs the package."""
    extra = distribution.extra_with(distribution.of_module(module)) or "cpu"
    return StepError(
        f"the step {step!r} needs {module!r}, which cannot be imported",
        why,
        f"install it: `{distribution.install(extra)}` (`recipe doctor` shows what is installed)",
    )
