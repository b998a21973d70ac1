"""The JSON files of a tokenizer beside a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.errors import StepError


def settings(path: Path) -> dict[str, Any]:
    """Return what a JSON file of the tokenizer says; {} where there is none, or it is no object.

    Raises StepError where it is no JSON.
    """
    try:
        said = json.loads(path.read_bytes()) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise StepError(f"{path.name} of the tokenizer is no valid JSON", [str(error)]) from error
    return said if isinstance(said, dict) else {}
