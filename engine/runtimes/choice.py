"""Choice among runtimes: the files that name the chosen one, or say why a runtime cannot have the model."""

from __future__ import annotations

import json
from pathlib import Path

from engine.errors import StepError
from engine.system import regular

FILE = "choice.json"
"""The name of the file. It holds no figures, so that a new measurement with the same choice changes no bytes."""
_RUNTIME = "runtime"
_REFUSED = "refused.txt"
"""The name of the file in place of a model that a runtime cannot have."""


def write(directory: Path, runtime: str) -> None:
    """Write the name of the chosen runtime beside its model in `directory`."""
    (directory / FILE).write_text(json.dumps({_RUNTIME: runtime}) + "\n", "utf-8")


def read(directory: Path) -> str:
    """Return the name of the runtime that was chosen for the model in `directory`.

    Raises StepError where no file says which runtime was chosen.
    """
    path = directory / FILE
    try:
        return str(json.loads(regular.read(path))[_RUNTIME])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(f"nothing says which runtime was chosen: {FILE} cannot be read", [f"{path}: {error}"]) from None


def refuse(directory: Path, reason: str) -> None:
    """Write into `directory`, in place of a model, why the runtime cannot have the model."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _REFUSED).write_text(f"{reason}\n", "utf-8")


def refusal(directory: Path) -> str | None:
    """Return why a runtime cannot have the model that `directory` is for; None where the model is there."""
    path = directory / _REFUSED
    return path.read_text("utf-8").strip() if path.is_file() else None
