"""A copy of a built project, with the command line, the environment and the folder that `recipe` is called with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import forks
import tiny_project

HEAVY = tiny_project.HEAVY | {"engine.api"}
"""What an up-to-date build that the snapshot answers does not import."""
_SECONDS = 300


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what steers recipe itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RECIPE_")} | {"CI": "true"}
    kept["RECIPE_TRUST_CACHE"] = "1"  # tests copy stores
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # as users have it: Python keeps what it compiled
    return kept


@dataclass(frozen=True)
class Run:
    """The exit code and the output of one command."""

    code: int
    out: str
    talk: str
    imported: frozenset[str] | None
    """The modules that the command imported; None for a fork, which has all of them."""

    @property
    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Workplace:
    """Where and how `recipe` is called; a mutation may change any of it, and every file under `folder`."""

    folder: Path
    environment: dict[str, str] = field(default_factory=clean_environment)
    recipe: str = "r.yaml"
    options: list[str] = field(default_factory=list)
    only_build: list[str] = field(default_factory=list)
    """Options that `why` does not have."""
    prefix: list[str] = field(default_factory=list)
    """What stands in front of the command: `taskset`, say."""
    start: Path | None = None
    """The folder that it is called from; None for the project's own."""
    umask: int = -1
    ended: dict[str, dict] = field(default_factory=dict)
    """The event of each job's end in the build before the mutation."""

    def path(self, name: str) -> Path:
        return self.folder / name

    def build(self, *, anew: bool = False) -> Run:
        """Build; `anew` starts Python, so that what is imported can be told."""
        return self._run("build", self.recipe, *self.options, *self.only_build, "--json", anew=anew)

    def why(self) -> list[dict]:
        run = self._run("why", self.recipe, *self.options, "--json")
        assert run.code == 0, run.talk
        return json.loads(run.out)

    def lock(self) -> None:
        run = self._run("lock", self.recipe)
        assert run.code == 0, run.talk

    def put_first(self, folder: Path) -> None:
        """Let Python find modules and packages in a folder before all others."""
        before = self.environment.get("PYTHONPATH")
        self.environment["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])

    def _run(self, *words: str, anew: bool = False) -> Run:
        folder = self.start or self.folder
        is_fork = not (anew or self.prefix or self.umask != -1) and forks.suits(self.environment)
        if is_fork:
            done = forks.run(words, folder, self.environment, seconds=_SECONDS)
        else:
            done = subprocess.run(
                [*self.prefix, sys.executable, "-X", "importtime", "-m", "engine", *words],
                cwd=folder, env=self.environment, capture_output=True, text=True, timeout=_SECONDS, check=False,
                umask=self.umask,
            )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        lines = done.stderr.splitlines()
        timed = [re.fullmatch(r"import time:.*\|.*\| +([\w.]+)", line) for line in lines]
        talk = "\n".join(line for line in lines if not line.startswith("import time:"))
        imported = None if is_fork else frozenset(match[1] for match in timed if match is not None)
        return Run(done.returncode, done.stdout, talk, imported)
