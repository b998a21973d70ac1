"""The real command line up to the step `fetch`, in the test's own process: a build takes a fraction of a second."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import fresh_process
import numpy as np
from safetensors.numpy import save_file

from engine import snapshot
from engine.commands import parse
from engine.system import interrupts


@dataclass(frozen=True)
class Build:
    """One `recipe build`: whether the snapshot answered, the exit code, the events, and the files that changed."""

    answered: bool
    code: int
    events: list[dict]
    changed: tuple[str, ...] = ()
    """The watched files that kept the snapshot from answering."""

    @property
    def weights(self) -> bytes:
        """The weights of the model that the build delivers."""
        path = next(event["path"] for event in self.events if event["event"] == "end" and event["job"] == "fetch")
        return Path(path, "model.safetensors").read_bytes()

    @property
    def states(self) -> list[str]:
        return [event["state"] for event in self.events if event["event"] == "end"]

    @property
    def notices(self) -> list[str]:
        return [event["text"] for event in self.events if event["event"] == "note"]


def model(folder: Path, number: float) -> Path:
    """Write the folder of a model whose weights are all one number."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    weights(folder / "model.safetensors", number)
    return folder


def weights(path: Path, number: float) -> None:
    save_file({"w": np.full((2, 2), number, np.float32)}, path)


def recipe(path: Path, source: str, more: str = "") -> None:
    path.write_text(f"name: r\nmodel: {{source: {source}}}\n{more}")


def build(*words: str, to: str = "fetch") -> Build:
    """Build a recipe as the program does: the snapshot is asked first."""
    fresh_process.forget()
    argv = ["build", *words, "--to", to, "--json"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        answer = snapshot.answer(argv[1:])
        if not isinstance(answer, int):
            arguments = parse(argv)
            try:
                code = int(arguments.run(arguments))
            finally:
                interrupts.restore()  # as the end of the program does
        else:
            code = answer
    changed = tuple(answer.names) if isinstance(answer, snapshot.ChangedFiles) else ()
    return Build(isinstance(answer, int), code, [json.loads(line) for line in out.getvalue().splitlines()], changed)


def settled(*words: str) -> Build:
    """Build until the snapshot answers, as it does at the second or third time."""
    for _ in range(3):
        time.sleep(0.03)
        done = build(*words)
        assert done.code == 0, done.events
        if done.answered:
            return done
    raise AssertionError("no snapshot answers a build in which nothing changed")


def switch(link: Path, target: str | Path) -> None:
    """Let a link lead somewhere else."""
    fresh = link.with_name(f"{link.name}.fresh")
    fresh.symlink_to(target)
    fresh.replace(link)


def exchange(one: Path, other: Path) -> None:
    """Let two files or folders change places; no time stamp inside them moves."""
    aside = one.with_name(f"{one.name}.aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def copied(template: Path, folder: Path) -> Path:
    """Copy a folder with its links."""
    return Path(shutil.copytree(template, folder, symlinks=True, copy_function=shutil.copy2))
