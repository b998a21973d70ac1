"""Preflight: faults that `recipe check` sees on this machine without building, in the words of the build's errors."""

from __future__ import annotations

from pathlib import Path

from engine import feasibility
from engine.builder.preflight import licenses, model, onnx_file, programs, samples
from engine.builder.preflight.checked_variant import CheckedVariant
from engine.builder.variant import PlannedVariant


def look(variant: PlannedVariant, store: Path) -> CheckedVariant:
    """Return a variant with what this machine knows about its model; `store` is the folder of the store.

    Raises RecipeError for the first fault that a build of the variant would meet. `look` writes no file.
    """
    subject = model.checked(variant, store)
    licenses.look(subject)
    if subject.facts is not None:
        feasibility.check_model(variant.loaded, subject.facts)
    model.look(subject)
    onnx_file.look(subject)
    programs.look_at_tools(subject)
    samples.look(subject)
    programs.look_at_server(subject)
    return subject
