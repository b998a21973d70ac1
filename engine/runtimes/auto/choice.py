"""Choice: the file beside a built model that names the runtime which a build has chosen for the model."""

from __future__ import annotations

import json
from pathlib import Path

from engine.errors import StepError
from engine.system import regular

FILE = "choice.json"
"""The name of the file. It holds no figures, so that a new measurement with the same choice changes no bytes."""
_RUNTIME = "runtime"


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
