"""The real command line, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import forks

_SECONDS = 600


class Program:
    """Runs `recipe` in a project folder and reads what it says."""

    def __init__(self, folder: Path, *, anew: bool = False) -> None:
        """If `anew` is true, each command starts Python, and is a child of the tests' own process."""
        self.folder = folder
        self.anew = anew
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("RECIPE_")}
        self.environment |= {"CI": "true", "RECIPE_TRUST_CACHE": "1"}  # tests copy stores

    def __call__(self, *words: str, expect: int | None = None) -> subprocess.CompletedProcess[str]:
        if not self.anew and forks.suits(self.environment):
            done = forks.run(words, self.folder, self.environment, seconds=_SECONDS)
        else:
            done = subprocess.run(
                [sys.executable, "-m", "engine", *words], cwd=self.folder, env=self.environment, capture_output=True,
                text=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        if expect is not None:
            assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start a command in a process of its own; what it prints can be read while it runs."""
        return subprocess.Popen(
            [sys.executable, "-m", "engine", *words], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            text=True, **more,
        )  # fmt: skip

    def on_terminal(self, *words: str, answer: str | None = None) -> tuple[str, int]:
        """Run a command on a terminal, answer its question, and return what it showed and its exit code."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", *words], cwd=self.folder, env=self.environment,
            stdin=follower, stdout=follower, stderr=follower,
        )  # fmt: skip
        os.close(follower)
        shown = b""
        with contextlib.suppress(OSError):  # the terminal closes with the program
            while piece := os.read(leader, 65536):
                shown += piece
                if answer is not None and b"[y/N] " in shown:
                    os.write(leader, f"{answer}\n".encode())
                    answer = None
        os.close(leader)
        return shown.decode(), process.wait(_SECONDS)

    def events(self, *words: str, expect: int | None = 0) -> list[dict]:
        return [json.loads(line) for line in self("build", *words, "--json", expect=expect).stdout.splitlines()]

    def states(self, *words: str, expect: int | None = 0) -> dict[str, str]:
        return {event["job"]: event["state"] for event in self.events(*words, expect=expect) if event["event"] == "end"}

    def why(self, *words: str) -> dict[str, dict]:
        return {finding["job"]: finding for finding in json.loads(self("why", *words, "--json", expect=0).stdout)}

    def shown(self, *words: str) -> dict[str, Any]:
        """Return what `recipe show` says of a recipe with one variant."""
        [variant] = json.loads(self("show", *words, "--json", expect=0).stdout)
        return variant

    def imports(self, *words: str) -> set[str]:
        """Return the modules that a command line imports."""
        command = [sys.executable, "-X", "importtime", "-m", "engine", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True
        )
        return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
