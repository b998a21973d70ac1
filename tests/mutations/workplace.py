"""A copy of a built project, with the command line, the environment and the folder that `recipe` is called with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

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
    imported: frozenset[str]

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

    def build(self) -> Run:
        return self._run("build", self.recipe, *self.options, *self.only_build, "--json")

    def why(self) -> list[dict]:
        run = self._run("why", self.recipe, *self.options, "--json")
        assert run.code == 0, run.talk
        return json.loads(run.out)

    def put_first(self, folder: Path) -> None:
        """Let Python find modules and packages in a folder before all others."""
        before = self.environment.get("PYTHONPATH")
        self.environment["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])

    def _run(self, *words: str) -> Run:
        done = subprocess.run(
            [*self.prefix, sys.executable, "-X", "importtime", "-m", "engine", *words],
            cwd=self.start or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            umask=self.umask,
        )
        talk, imported = [], set()
        for line in done.stderr.splitlines():
            timed = re.fullmatch(r"import time:.*\|.*\| +([\w.]+)", line)
            if timed is not None:
                imported.add(timed[1])
            elif not line.startswith("import time:"):
                talk.append(line)
        assert "Traceback" not in done.stderr, done.stderr
        return Run(done.returncode, done.stdout, "\n".join(talk), frozenset(imported))
