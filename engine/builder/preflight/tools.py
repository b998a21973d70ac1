"""Tools: the Python packages that the jobs import on this machine, and the extras that install them."""

from __future__ import annotations

from engine.builder.imports import cannot_import
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.machine import imports, tools
from engine.text import distribution


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError for a job whose step uses a package of this project's extras that is not installed.

    A job that runs on another machine, for its GPU, needs nothing here.
    """
    for job in subject.variant.jobs:
        if job.step.hardware() is not None:
            continue
        for name in job.step.tools_used():
            if distribution.extra_with(name) is None or tools.version_of(name) != tools.MISSING:
                continue
            module = distribution.module_of(name)
            if imports.location(module) is None:  # a package without a distribution can be imported, too
                with subject.at("name"):
                    raise cannot_import(job.name, module, f"ModuleNotFoundError: No module named {module!r}")
