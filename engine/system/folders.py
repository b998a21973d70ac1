"""The option `-C DIR`: run as if started in another folder, as `make` and `git` do."""

# The program imports this module only where a command line has -C.

from __future__ import annotations

import os
from collections.abc import Sequence

from engine.errors import UsageError
from engine.text import suggestions

OPTION = "-C"


def enter(words: Sequence[str]) -> list[str]:
    """Return a command line without each `-C DIR`, and change to these folders, each seen from the one before.

    What stands behind `--` is for another program. Raises UsageError for a folder that cannot be entered.
    """
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest]
        if word.startswith(OPTION):
            _enter(word.removeprefix(OPTION) or next(rest, ""))
        else:
            kept.append(word)
    return kept


def _enter(folder: str) -> None:
    if not folder:
        raise UsageError(f"{OPTION} names no folder", hint=f"write {OPTION} DIR before the command")
    try:
        os.chdir(folder)
    except OSError as error:
        around, name = os.path.split(folder.rstrip(os.sep))
        near = suggestions.nearest(name, _folders(around or "."))
        hint = suggestions.did_you_mean(os.path.join(around, near[0])) if near else f"this is {os.getcwd()}"
        raise UsageError(f"{OPTION} {folder}: {(error.strerror or 'no folder').lower()}", hint=hint) from None


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
