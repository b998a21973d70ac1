"""Commands as forks of a process that has the program imported: most of a short command's time is its imports.

A fork is a process of its own, with streams, a folder and an environment of its own, and ends as the command ends.
`pytest --whole` starts every command anew instead.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from engine.store.stat_cache import TICK_NS

ROOT = Path(__file__).parents[2]
_ZYGOTE = ROOT / "tests" / "fire" / "zygote.py"
_AT_START = ("PYTHON", "PYDANTIC", "LANG", "LC_", "LD_", "TZ")
"""The first letters of variables that are read when Python or a package starts."""
_ROOMS = ("commands", "steps")
"""The folders of `engine/` whose modules are imported beforehand, with all that they import."""

_AROUND = dict(os.environ)
"""The variables of the process that has the program imported: those of the tests, before any test changed them."""

allowed = hasattr(os, "fork")
"""Whether commands may be forks. The tests of this run may say no, all of them at once."""


Ended = subprocess.CompletedProcess[str]
"""How a command ended, and what it printed."""


def suits(environment: Mapping[str, str]) -> bool:
    """Say whether a command in this environment may be a fork: Python itself would start as it did there."""
    return allowed and _of_the_start(environment) == _of_the_start(_AROUND)


def run(words: tuple[str, ...], folder: Path, environment: Mapping[str, str], *, seconds: float) -> Ended:
    """Run a command to its end; it is killed after so many seconds."""
    return _forks().run(words, folder, environment, seconds=seconds)


class _Forks:
    """The process that has the program imported, and the commands that it runs, one after the other."""

    def __init__(self) -> None:
        files = [path for room in _ROOMS for path in sorted((ROOT / "engine" / room).glob("[a-z]*.py"))]
        modules = [f"engine.{path.parent.name}.{path.stem}" for path in files]
        self._lock = threading.Lock()
        self._zygote = subprocess.Popen(
            [sys.executable, "-P", _ZYGOTE, *modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_AROUND
        )

    def run(self, words: tuple[str, ...], folder: Path, environment: Mapping[str, str], *, seconds: float) -> Ended:
        time.sleep(TICK_NS / 1e9)  # Python takes longer to start: what a test wrote before is older than the build
        with self._lock, tempfile.TemporaryDirectory(prefix="recipe-tests-fork-") as output:
            place = {"cwd": str(folder), "environment": dict(environment), "output": output}
            request = {"words": words, **place, "hook": ""}
            self._zygote.stdin.write(json.dumps(request).encode() + b"\n")
            self._zygote.stdin.flush()
            pid = self._answer()["pid"]
            stuck = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
            stuck.start()
            try:
                code = self._answer()["code"]
            finally:
                stuck.cancel()
            out, err = (Path(output, name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(["recipe", *words], code, out, err)

    def _answer(self) -> dict[str, int]:
        line = self._zygote.stdout.readline()
        assert line, "what starts the commands has died"
        return json.loads(line)

    def close(self) -> None:
        self._zygote.stdin.close()
        self._zygote.wait()


@cache
def _forks() -> _Forks:
    forks = _Forks()
    atexit.register(forks.close)
    return forks


def _of_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}
