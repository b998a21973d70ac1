"""The same thousands of small jobs for each contender: a loop, our recipes, other build tools."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import recipe_program as program
from build_tools import SNAKEMAKE, Peer, Work
from timing import Contender, Took

LOOP = "one loop in Python"
ALONE = "the changed job alone"
MATRIX = "recipe, one matrix"
FILES = "recipe, a file per job"
OURS = (MATRIX, FILES)

_TRIVIAL = Path(__file__).resolve().parent / "trivial"
_EDITED = 7
"""The number of the job whose input is changed."""
_BUILT = re.compile(rb"^built +t-", re.MULTILINE)
_SERIAL = itertools.count()


@dataclass(frozen=True)
class Entry:
    """A contender: its build, the number of jobs, and a function that resets its folder to the inputs."""

    build: Contender
    count: int
    prepare: Callable[[], None]

    def edit(self) -> None:
        """Give one of the inputs a new content, different in every call."""
        (self.build.folder / "in" / f"{_EDITED}.txt").write_text(f"edited {next(_SERIAL)}\n")

    def did(self, took: Took, jobs: int) -> bool:
        """Return whether `recipe` ran `count` jobs. For the other tools, return whether the outputs are right."""
        if self.build.name in OURS:
            return len(_BUILT.findall(took.output)) == jobs
        if self.build.name == ALONE:
            edited = f"{_EDITED}.txt"
            return (self.build.folder / "out" / edited).read_text() == (self.build.folder / "in" / edited).read_text()
        if self.build.name == LOOP:
            return sum(1 for _ in self.build.folder.glob("out/*/*.txt")) == self.count
        given, copied = self.build.folder / "in", self.build.folder / "out"
        edited = f"{_EDITED}.txt"
        return len(os.listdir(copied)) == self.count and (given / edited).read_text() == (copied / edited).read_text()


def loop(count: int, folder: Path) -> Entry:
    """Return a plain Python loop that does the work without a build tool."""
    command = [sys.executable, str(_TRIVIAL / "loop.py"), str(count)]
    return Entry(Contender(LOOP, command, folder), count, lambda: _fresh(folder, count))


def alone(count: int, folder: Path) -> Entry:
    """Return the job whose input is changed, without a build tool: a process that imports the step and runs it."""
    site = folder.with_name(f"{folder.name}-site")
    _install_trivial(site)
    _fresh(folder, count)
    command = [sys.executable, str(_TRIVIAL / "alone.py"), str(_EDITED)]
    return Entry(Contender(ALONE, command, folder, program.environment(site)), count, lambda: _fresh(folder, count))


def matrix(count: int, folder: Path) -> Entry:
    """Return a build of one recipe whose matrix has a variant for each job."""
    numbers = ", ".join(map(str, range(count)))
    text = (
        "name: t-${steps.trivial.number}\nmodel: {source: model.onnx}\nsteps: {trivial: {number: 0}}\n"
        f"matrix:\n  steps.trivial.number: [{numbers}]\n"
    )
    return _ours(MATRIX, count, folder, {"all.yaml": text})


def recipes(count: int, folder: Path) -> Entry:
    """Return a build of many recipes, one for each job, on one command line."""
    text = "name: t-{0}\nmodel: {{source: model.onnx}}\nsteps: {{trivial: {{number: {0}}}}}\n"
    return _ours(FILES, count, folder, {f"{number}.yaml": text.format(number) for number in range(count)})


def peer(tool: Peer, path: str, folder: Path, count: int) -> Entry:
    """Return another tool's build, with one `cp` for each job."""
    works = [Work(f"j{n}", (f"in/{n}.txt",), (f"out/{n}.txt",), f"cp in/{n}.txt out/{n}.txt") for n in range(count)]

    def prepare() -> None:
        _fresh(folder, count)
        tool.prepare(path, folder, works)
        if tool is SNAKEMAKE:
            _wildcard_rule(folder, count)

    return Entry(tool.contender(path, folder, cores=os.cpu_count() or 1), count, prepare)


def _ours(name: str, count: int, folder: Path, files: dict[str, str]) -> Entry:
    site = folder.with_name(f"{folder.name}-site")
    _install_trivial(site)

    def prepare() -> None:
        _fresh(folder, count)
        for empty in ("pyproject.toml", "model.onnx"):
            (folder / empty).touch()
        for file, text in files.items():
            (folder / file).write_text(text)

    command: Sequence[str] = [*program.command(), "build", *files, "--to", "trivial"]
    return Entry(Contender(name, command, folder, program.environment(site)), count, prepare)


def _fresh(folder: Path, count: int) -> None:
    """Make a folder that holds only the inputs."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    (folder / "out").mkdir()
    for number in range(count):
        (folder / "in" / f"{number}.txt").write_text(f"text {number}\n")


def _install_trivial(site: Path) -> None:
    """Write the trivial step into a folder that looks like an installed package."""
    information = site / "trivial_step-1.0.dist-info"
    information.mkdir(parents=True)
    shutil.copy(_TRIVIAL / "trivial_step.py", site)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: trivial-step\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[recipe.steps]\ntrivial = trivial_step\n")


def _wildcard_rule(folder: Path, count: int) -> None:
    """Write the Snakefile as Snakemake's users do: one rule with a wildcard, not a rule for each file."""
    (folder / "Snakefile").write_text(
        f"rule all:\n    input: expand('out/{{n}}.txt', n=range({count}))\n"
        "rule job:\n    input: 'in/{n}.txt'\n    output: 'out/{n}.txt'\n    shell: 'cp {input} {output}'\n"
    )
