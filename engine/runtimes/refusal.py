"""Refusal: the file in place of a built model that says why a runtime cannot have the model."""

from __future__ import annotations

from pathlib import Path

_FILE = "refused.txt"


def write(directory: Path, reason: str) -> None:
    """Write into `directory`, in place of a model, why the runtime cannot have the model."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _FILE).write_text(f"{reason}\n", "utf-8")


def read(directory: Path) -> str | None:
    """Return why a runtime cannot have the model that `directory` is for; None where the model is there."""
    path = directory / _FILE
    return path.read_text("utf-8").strip() if path.is_file() else None
