"""Passport file: JSON beside a compiled model that says what built the model, and on which machines it loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from engine.errors import StepError
from engine.step import Frozen

FILE = "passport.json"
"""The name of the file with the passport, in the directory of the compiled model."""
_SHOWN = 4
"""The largest number of complaints in one error."""
P = TypeVar("P", bound=Frozen)


def save(directory: Path, passport: Frozen) -> None:
    """Write the passport beside the compiled model in a directory."""
    (directory / FILE).write_text(passport.model_dump_json(indent=1) + "\n", "utf-8")


def load(place: Path, kind: type[P], title: str) -> P:
    """Return the passport of a compiled model; `place` is the model's file or its directory.

    `title` is what messages call the model: "TensorRT engine". Raises StepError where the passport is missing, or where
    its content is not that of a passport.
    """
    path = (place if place.is_dir() else place.parent) / FILE
    if not path.is_file():
        raise StepError(
            f"the {title} comes without its {FILE}",
            [f"looked for {path}"],
            f"without it nobody can tell where the {title} loads: build it again",
        )
    try:
        return kind.model_validate(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        raise StepError(f"{path} is no passport of a {title}", _complaints(error)[:_SHOWN], "build it again") from error


def _complaints(error: Exception) -> list[str]:
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return str(error).splitlines()
