"""A mutation: what is changed in a built project, what must be made again, and what `why` must say of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mutations.workplace import Workplace

Action = Callable[[Workplace], None]
Rows = str | tuple[str, ...]
"""A row of a key, or several; `options.serving.largest` stands for every row below it, too."""
MOUNT = "mount another /proc/cpuinfo"
ARCHITECTURE = "call another architecture"
CHOOSE = "choose some of several CPUs"
RUNTIMES = "run OpenVINO"


@dataclass(frozen=True)
class Mutation:
    """One line of a table.

    `causes` are the jobs that `why` calls stale or new beforehand, each with exactly the rows that it must name; a job
    of a matrix is written `variant:job`. `spreads` are jobs that are made again because of these: `why` cannot know
    yet, and must say so. Together they are all that is made again.
    """

    says: str
    project: str
    action: tuple[Action, ...]
    causes: Mapping[str, Rows] = field(default_factory=dict)
    spreads: frozenset[str] = frozenset()
    exit: int = 0
    asks_why: bool = True
    """Whether `why` runs before the build. It may mend what it looks at: some mutations are tried without."""
    may_be_mended: bool = False
    """Whether a job need not be made again where the store can make good what it lost."""
    needs: str = ""
    """What the machine must let the mutation do, by its name in `tables`."""

    @property
    def rebuilt(self) -> frozenset[str]:
        """Every job that must be made again, as `variant:job`."""
        return frozenset(self.causes) | self.spreads


def changes(
    says: str, project: str, *action: Action, causes: Mapping[str, Rows], spreads: str = "", **more: Any
) -> Mutation:
    """Return a mutation after which jobs must be made again."""
    return Mutation(says, project, action, causes, frozenset(spreads.split()), **more)


def nothing(says: str, project: str, *action: Action, **more: Any) -> Mutation:
    """Return a mutation after which nothing may be made again."""
    return Mutation(says, project, action, **more)


_NEEDS = {
    "fetch": (),
    "export": ("fetch",),
    "reference": ("fetch",),
    "shape-infer": ("export",),
    "fuse": ("shape-infer",),
    "quantize": ("fuse",),
    "validate": ("quantize", "reference", "fetch"),
    "bench": ("validate", "export"),
    "package": ("validate", "fetch"),
}
"""The jobs of a text model in int8, each with those that it takes something from, as the documentation draws them."""


def split(jobs: str, row: str) -> tuple[dict[str, str], str]:
    """Return which of some jobs `why` can be sure of, with their cause, and those that come behind one of these."""
    chosen = jobs.split()
    behind = {job for job in chosen if _above(job) & set(chosen)}
    return {job: row for job in chosen if job not in behind}, " ".join(behind)


def _above(job: str) -> set[str]:
    return {job for need in _NEEDS[job] for job in (need, *_above(need))}
