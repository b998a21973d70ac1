"""Other build tools: their programs, and the same pipeline in the build file of each tool."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from timing import Contender


@dataclass(frozen=True)
class Work:
    """One job: the files that it reads, the files that it writes, and its shell command."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    command: str


@dataclass(frozen=True)
class Peer:
    """A build tool. `write` puts its build file into a folder; `arguments(cores)` are the arguments of a full build."""

    name: str
    package: str
    write: Callable[[Path, Sequence[Work]], None]
    arguments: Callable[[int], list[str]]
    program: str = ""
    setup: tuple[tuple[str, ...], ...] = ()

    def find(self, folder: Path | None) -> str | None:
        """Return the path of the tool's program, from `folder` or else from the PATH; None without the program."""
        places = [str(folder)] if folder else []
        search = os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])
        return shutil.which(self.program or self.name, path=search)

    def contender(self, program: str, folder: Path, cores: int) -> Contender:
        """Return the tool's build in a folder that `prepare` has filled."""
        return Contender(self.name, [program, *self.arguments(cores)], folder)

    def prepare(self, program: str, folder: Path, works: Sequence[Work]) -> None:
        """Write the build file and the tool's own files into `folder`."""
        self.write(folder, works)
        for words in self.setup:
            subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)

    def version(self, program: str) -> str:
        """Return the version that the tool prints."""
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        return (done.stdout or done.stderr).splitlines()[0].removeprefix("GNU Make").strip()


def absent(peer: Peer) -> str:
    """Return the text of a table's row for a tool that is not installed."""
    return f"not installed: {peer.package}"


def _makefile(folder: Path, works: Sequence[Work]) -> None:
    lines = [f"all: {' '.join(name for work in works for name in work.writes)}", ".PHONY: all"]
    for work in works:
        grouped = "&:" if len(work.writes) > 1 else ":"
        lines += [f"{' '.join(work.writes)} {grouped} {' '.join(work.reads)}", f"\t@{work.command}"]
    _write(folder / "Makefile", lines)


def _ninja(folder: Path, works: Sequence[Work]) -> None:
    lines = ["rule run", "  command = $what"]
    for work in works:
        lines += [f"build {' '.join(work.writes)}: run {' '.join(work.reads)}", f"  what = {work.command}"]
    _write(folder / "build.ninja", lines)


def _dodo(folder: Path, works: Sequence[Work]) -> None:
    tasks = [
        {"name": w.name, "file_dep": list(w.reads), "targets": list(w.writes), "actions": [w.command]} for w in works
    ]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    _write(
        folder / "dodo.py",
        [
            "import json",
            "def task_job():",
            "    with open('tasks.json') as file:",
            "        yield from json.load(file)",
        ],
    )


def _dvc(folder: Path, works: Sequence[Work]) -> None:
    stages = {w.name: {"cmd": w.command, "deps": list(w.reads), "outs": list(w.writes)} for w in works}
    (folder / "dvc.yaml").write_text(json.dumps({"stages": stages}))


def _snakefile(folder: Path, works: Sequence[Work]) -> None:
    lines = ["rule all:", f"    input: {_quoted(name for work in works for name in work.writes)}"]
    for work in works:
        lines += [
            f"rule {work.name.replace('-', '_')}:",
            f"    input: {_quoted(work.reads)}",
            f"    output: {_quoted(work.writes)}",
            f"    shell: {work.command!r}",
        ]
    _write(folder / "Snakefile", lines)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


MAKE_R = Peer("make -r", "your system's `make`", _makefile, lambda n: ["-r", "-s", f"-j{n}"], "make")
MAKE = Peer("make", "your system's `make`", _makefile, lambda n: ["-s", f"-j{n}"])
NINJA = Peer("ninja", "your system's `ninja-build`, or pip install ninja", _ninja, lambda n: ["--quiet", f"-j{n}"])
DOIT = Peer("doit", "pip install doit", _dodo, lambda n: ["-v0", *(["-n", str(n)] if n > 1 else [])])
DVC = Peer(
    "dvc",
    "pip install dvc",
    _dvc,
    lambda _: ["repro", "--quiet"],
    # Without these settings, every run may start a second process that sends usage data.
    setup=(
        ("init", "--no-scm", "--quiet"),
        ("config", "core.analytics", "false"),
        ("config", "core.check_update", "false"),
    ),
)
SNAKEMAKE = Peer("snakemake", "pip install snakemake", _snakefile, lambda n: ["--quiet", "all", "--cores", str(n)])
