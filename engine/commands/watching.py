"""`recipe build --watch`: a build in a process of its own, and again whenever a file that it reads changes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from engine import snapshot
from engine.errors import Exit
from engine.recipe.project import project_of
from engine.system import folders, regular, watched

_SECONDS = 0.5
"""The time between two looks at the files."""
_PATIENCE = 2.0
"""The seconds after which a build that has not ended by Ctrl-C is interrupted: the terminal's signal reaches both."""
_OPTION = "--watch"
_RECIPES = (".yaml", ".yml")
_MOST = 20_000
"""The largest number of a project's files that are watched after a build that failed."""


def build_again(words: Sequence[str], recipe: Path) -> NoReturn:
    """Build, and build again after each change, until Ctrl-C raises KeyboardInterrupt.

    The files of a build are those of its snapshot. A build that failed has none: then the project's files count.
    """
    own = [word for word in words if word != _OPTION]
    root = str(project_of(recipe))
    while True:
        before = _rows(root)
        code = _build(own)
        sys.stderr.write(f"watching: {_change(own, root, before, follows=code in (Exit.OK, Exit.WAITING))} changed\n")


def _build(words: Sequence[str]) -> int:
    """Run a build and return its exit code. A build that is interrupted ends before KeyboardInterrupt is raised."""
    child = subprocess.Popen([sys.executable, "-m", "recipe_build", "build", *words])  # noqa: S603 - this program
    try:
        code = child.wait()
    except KeyboardInterrupt:
        try:
            child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            child.wait()
        raise
    if code == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    return code


def _change(words: Sequence[str], root: str, before: dict[str, object], *, follows: bool) -> str:
    """Wait until a file changes, and return its path. With `follows`, the build's snapshot says which files count."""
    changes = snapshot.compare(words) if follows else None
    while changes is not None and not changes.names:
        time.sleep(_SECONDS)
        changes = snapshot.compare(words)
        if changes is None:
            return "the environment"
    while changes is None:
        now = _rows(root)
        different = [name for name in before | now if before.get(name) != now.get(name)]
        if different:
            return os.path.relpath(different[0])
        time.sleep(_SECONDS)
    return os.path.relpath(changes.names[0])


def _rows(root: str) -> dict[str, object]:
    """Return the stat row of each file of a project that is YAML, or that a YAML file of the project may name.

    So a log of this command, in the project, is no change.
    """
    names = [os.path.relpath(path, root) for path, _ in zip(folders.files_beside(root), range(_MOST), strict=False)]
    texts = [_text(os.path.join(root, name)) for name in names if name.endswith(_RECIPES)]
    rows: dict[str, object] = {}
    for name in names:
        if name.endswith(_RECIPES) or any(part in text for text in texts for part in name.split(os.sep)):
            rows[os.path.join(root, name)] = watched.row_of(os.path.join(root, name))
    return rows


def _text(path: str) -> str:
    try:
        return regular.read_text(path, errors="replace")
    except OSError:
        return ""
