"""JSON files of a model directory: how they are read, and the error for a file that is no JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import StepError


def load(path: Path) -> Any:
    """Return the content of a JSON file as a Python value. Raises StepError where the file is no valid JSON."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise StepError(
            f"{path.name} of the model is no valid JSON",
            [f"{type(error).__name__}: {error}"],
            "a cut-off download or an unfinished edit? fetch or save the model again",
        ) from None


def has_field(path: Path, name: str) -> bool:
    """Tell whether a file holds a JSON object with a field `name`."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and name in value


def settings(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file as a dict; {} where the file is missing or holds anything but a JSON object.

    Raises StepError where the file is no valid JSON.
    """
    value = load(path) if path.is_file() else {}
    return value if isinstance(value, dict) else {}


def weight_map(index: Path) -> dict[str, str]:
    """Return each tensor's name -> the file with the tensor, by the index of sharded weights. Raises StepError."""
    try:
        files = dict(json.loads(index.read_bytes())["weight_map"])
        if not all(isinstance(file, str) for file in files.values()):
            raise TypeError("a tensor has no file name")  # noqa: TRY301 - reported like the errors around it
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StepError(f"{index.name} is not readable", [f"{type(error).__name__}: {error}"]) from None
    return files
