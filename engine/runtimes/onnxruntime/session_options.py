"""Session options: the file `session.json` beside a model, with the options that every session of the model needs."""

# Only options that Triton's backend can pass on, or that it can do without (`triton.py`): the package is served as the
# model was validated and measured.

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from engine.errors import StepError

OPTIONS = "session.json"
"""The file beside a model with the session options that the model needs."""

_SAVED = _DISABLED, _LEVEL = ("disabled_optimizers", "graph_optimization_level")
"""The names of the options that `session.json`, the file with a model's session options, may have."""
LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}


class SavedOptions(NamedTuple):
    """The options of a model: its level of optimization, a key of `LEVELS`, and the optimizers that do not run."""

    level: str = "all"
    disabled: tuple[str, ...] = ()


def read(directory: Path) -> SavedOptions:
    """Return the session options in `session.json`; ONNX Runtime's defaults where the file is missing.

    Raises StepError for unknown options or levels in `session.json`.
    """
    path = directory / OPTIONS
    if not path.is_file():
        return SavedOptions()
    try:
        saved = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise StepError(f"{OPTIONS} is no JSON", [str(error)]) from error
    if not isinstance(saved, dict) or not saved.keys() <= set(_SAVED) or saved.get(_LEVEL, "all") not in LEVELS:
        raise StepError(
            f"{OPTIONS} asks for something unknown",
            [json.dumps(saved)],
            f"it may say {' and '.join(_SAVED)}; levels are {', '.join(LEVELS)}",
        )
    return SavedOptions(saved.get(_LEVEL, "all"), tuple(saved.get(_DISABLED, ())))


def save(directory: Path, *, level: str, disabled: tuple[str, ...] = ()) -> None:
    """Write `session.json`: the optimization level and the disabled optimizers with which the model must be served."""
    saved = {_DISABLED: list(disabled), _LEVEL: level}
    (directory / OPTIONS).write_text(json.dumps(saved, indent=2) + "\n", "utf-8")
