"""How many of the last commits would have re-keyed each step of a recipe, and what the digests of its code cost."""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from timing import duration, machine, table

from engine import api
from engine.builder.code import closure, normal_form
from engine.builder.job import Job

ROOT = Path(__file__).resolve().parent.parent
_CODE = ".py"
_COMMIT = "a commit"
"""The line that Git prints before the changes of each commit, which begin with colons."""
_OURS = "engine/"


class Change(NamedTuple):
    """A file that a commit changes, with the Git objects of its content; `old` is "" for a new file."""

    old: str
    new: str
    before: str
    after: str


@dataclass(frozen=True)
class History:
    """The last commits of a repository, the newest first; merges have no changes of their own and do not count."""

    commits: Sequence[Sequence[Change]]

    @classmethod
    def of(cls, root: Path, count: int) -> History:
        """Return the history of the Git repository at `root`. Raises CalledProcessError."""
        form = ["--no-merges", f"-n{count}", "--raw", "-M", "--no-abbrev", f"--format=format:{_COMMIT}"]
        command = ["git", "-C", str(root), "-c", "core.quotePath=false", "log", *form]
        text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return cls([list(_changes(part)) for part in text.split(f"{_COMMIT}\n")[1:]])

    def renames(self) -> Mapping[str, str]:
        """Return the name that each renamed file had next; the newest rename of a name counts."""
        names: dict[str, str] = {}
        for change in (each for commit in self.commits for each in commit):
            if change.old and change.old != change.new:
                names.setdefault(change.old, change.new)
        return names


def _changes(part: str) -> Iterator[Change]:
    """Yield the changes of a commit; a file that a commit deletes is no file of today."""
    for line in filter(None, part.splitlines()):
        fields, *paths = line.split("\t")
        _, _, before, after, status = fields.split()
        if status != "D":
            yield Change("" if status == "A" else paths[0], paths[-1], before, after)


class Contents:
    """The contents of Git objects, read by one process."""

    def __init__(self, root: Path) -> None:
        command = ["git", "-C", str(root), "cat-file", "--batch"]
        self._git = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.code = cache(self._code)
        """Returns what counts of a Python file by its object: its normal form, or its bytes if Python refuses them."""

    def _code(self, name: str) -> str | bytes:
        assert self._git.stdin is not None
        assert self._git.stdout is not None
        self._git.stdin.write(f"{name}\n".encode())
        self._git.stdin.flush()
        size = int(self._git.stdout.readline().split()[-1])
        content = self._git.stdout.read(size + 1)[:-1]
        try:
            return normal_form.of(ast.parse(content), "").text
        except (SyntaxError, ValueError, RecursionError):
            return content

    def close(self) -> None:
        """End the process."""
        self._git.communicate()


def rekeying(history: History, root: Path) -> list[set[str]]:
    """Return, for each commit, the files of the program whose code or bytes it changed, by their paths of today.

    A rename counts as a change, because the names of modules are a part of the digest.
    """
    names, contents = history.renames(), Contents(root)
    try:
        return [
            {path for each in commit if (path := _today(each.new, names)).startswith(_OURS) and _counts(each, contents)}
            for commit in history.commits
        ]
    finally:
        contents.close()


def _counts(change: Change, contents: Contents) -> bool:
    if change.old != change.new:
        return True
    if not change.new.endswith(_CODE):
        return change.before != change.after
    return contents.code(change.before) != contents.code(change.after)


def _today(path: str, names: Mapping[str, str]) -> str:
    """Return the path of a file after all renames; a file that got an earlier name back stops there."""
    passed = {path}
    while (following := names.get(path)) is not None and following not in passed:
        passed.add(path := following)
    return path


def row(job: Job, commits: Iterable[set[str]], root: Path) -> list[str]:
    """Return the row of a job: its modules, and how many commits re-key it with and without the worker's modules."""
    kind = job.step.work_class()
    every = closure.of_step(job.step)
    own = closure.of(kind.__qualname__, (kind.__module__, *job.step.code_used()))
    counts = []
    for code in (every, own):
        files = {path.resolve().relative_to(root).as_posix() for path in code.before if path.is_relative_to(root)}
        counts.append(sum(not files.isdisjoint(each) for each in commits))
    return [job.name, str(len(every.modules)), str(counts[0]), str(len(own.modules)), str(counts[1])]


def cpu_seconds(jobs: Sequence[Job], runs: int) -> float:
    """Return the CPU time of all digests of a recipe's code: the median of some runs, each without remembered code."""
    took = []
    for _ in range(runs):
        closure.forget()
        started = time.process_time()
        for job in jobs:
            closure.of_step(job.step)
        took.append(time.process_time() - started)
    return statistics.median(took)


def main() -> None:
    """Print a table for each recipe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", default=["minilm_t4.yaml", "minilm_cpu.yaml"], help="files in recipes/")
    parser.add_argument("--commits", type=int, default=400, metavar="N", help="the last N commits (400)")
    parser.add_argument("--runs", type=int, default=5, help="runs of which the CPU time is the median (5)")
    options = parser.parse_args()
    history = History.of(ROOT, options.commits)
    commits = rekeying(history, ROOT)
    for recipe in options.recipes:
        [variant, *_] = api.plan([ROOT / "recipes" / recipe])
        seconds = cpu_seconds(variant.jobs, options.runs)
        header = [recipe, "modules", f"of {len(commits)} commits", "modules without the worker's", "commits"]
        print(table(header, (row(job, commits, ROOT) for job in variant.jobs)))
        print(f"\nAll digests of the code: {duration(seconds)} of CPU time, the median of {options.runs} runs.\n")
    print(
        f"{sum(map(bool, commits))} of the {len(commits)} commits changed the code or data of the program. {machine()}."
    )


if __name__ == "__main__":
    main()
