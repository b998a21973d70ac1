"""Licence: what the model's own files state about their licence; nothing is guessed."""

from __future__ import annotations

from pathlib import Path

from engine.kit.checkpoints import licenses

_NOT_STATED = "Licence: not stated by the model's files. Ask who published the model before you serve it."


def line(place: Path | None) -> str:
    """Return a comment with the licence that the files in `place` state; None for a model without such files."""
    statements = licenses.read("model", place, source="", revision=None).about.statements if place else ()
    if not statements:
        return _NOT_STATED
    return f"Licence: {'; '.join(f'{each.spdx or each.text} (stated by {each.by})' for each in statements)}."
