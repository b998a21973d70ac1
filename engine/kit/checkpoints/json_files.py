"""The JSON files of a model and of its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import StepError


def load(path: Path, *, part: str = "model") -> Any:
    """Return the content of a JSON file of a model, or of the named part of it. Raises StepError for invalid JSON."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise StepError(
            f"{path.name} of the {part} is no valid JSON",
            [f"{type(error).__name__}: {error}"],
            "a cut-off download or an unfinished edit? fetch or save the model again",
        ) from None


def settings(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a tokenizer; {} where the file is missing or holds no object.

    Raises StepError for invalid JSON.
    """
    content = load(path, part="tokenizer") if path.is_file() else {}
    return content if isinstance(content, dict) else {}


def weight_map(index: Path) -> dict[str, str]:
    """Return the file of each tensor, from the index of weights in several files. Raises StepError."""
    try:
        files = dict(json.loads(index.read_bytes())["weight_map"])
        if not all(isinstance(file, str) for file in files.values()):
            raise TypeError("a tensor has no file name")  # noqa: TRY301 - told like the errors around it
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StepError(f"{index.name} is not readable", [f"{type(error).__name__}: {error}"]) from None
    return files
