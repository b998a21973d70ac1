"""Session options: the file `session.json` beside a model, with the options that every session of the model needs."""

# Only options that Triton's backend can pass on, or that it can do without (`triton.py`): the package is served as the
# model was validated and measured.

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import StepError

OPTIONS = "session.json"
"""The file beside a model with the session options that the model needs."""

_SAVED = ("disabled_optimizers", "graph_optimization_level")
"""The names of the options that `session.json`, the file with a model's session options, may have."""
LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


def read(directory: Path) -> dict[str, Any]:
    """Return the session options in `session.json`; an empty mapping where the file is missing.

    Raises StepError for unknown options or levels in `session.json`.
    """
    path = directory / OPTIONS
    if not path.is_file():
        return {}
    try:
        saved = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise StepError(f"{OPTIONS} is no JSON", [str(error)]) from error
    if not isinstance(saved, dict) or not _is_known(saved):
        raise StepError(
            f"{OPTIONS} asks for something unknown",
            [json.dumps(saved)],
            f"it may say {' and '.join(_SAVED)}; levels are {', '.join(LEVELS)}",
        )
    return saved


def save(directory: Path, *, level: str, disabled: tuple[str, ...] = ()) -> None:
    """Write `session.json`: the optimization level and the disabled optimizers with which the model must be served."""
    saved = {"disabled_optimizers": list(disabled), "graph_optimization_level": level}
    (directory / OPTIONS).write_text(json.dumps(saved, indent=2) + "\n", "utf-8")


def _is_known(saved: Mapping[str, Any]) -> bool:
    """Tell whether `session.json` has only options in `_SAVED` and an optimization level in `LEVELS`."""
    return all(name in _SAVED for name in saved) and saved.get("graph_optimization_level", "all") in LEVELS
