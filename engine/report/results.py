"""What a build prints to standard output at its end: tables, and the folders of the packages."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from engine.events import Event, Finished
from engine.report import plans
from engine.text import lists

MANY = 4
"""The largest number of variants whose jobs and tables are printed one by one, unless -v asks for all."""
_NAMED = 3
"""The largest number of packages that the line about many packages names."""
_MANY_PROOFS = 16
"""The largest number of variants for which a build says what their engines prove, also where no job of theirs ran."""


def shown(path: Path) -> str:
    """Return a path as users type it: a relative path where it is below the working directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


@dataclass(frozen=True)
class Results:
    """The texts about the results of a build, from the longest to the shortest."""

    whole: str
    """The tables of all variants, and a line with the folder of each package."""
    brief: str
    """The same for few variants; of many, the tables of those that were built, one line, and what engines prove."""
    packages: str
    """A line with the folder of each package."""


class BuildReport(Protocol):
    """Receives and shows the events of a build; a context manager whose end restores the terminal."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def on_event(self, event: Event) -> None:
        """Show the next event of a build."""

    def finish(self, results: Results) -> None:
        """Show the results of the build; called after the last event."""


def results(finished: Finished, tables: Mapping[str, str], *, built: Collection[str] = ()) -> Results:
    """Return the texts; `tables` are by variant, "" for none, and `built` the variants of which a job ran."""
    packages = "".join(f"{name} -> {shown(path)}\n" for name, path in finished.packages.items())
    whole = "".join(tables.values()) + packages
    if len(tables) <= MANY:
        return Results(whole, whole, packages)
    news = {name: table for name, table in tables.items() if name in built and table}
    some = news if len(news) <= MANY else {}
    others = tables if len(tables) <= _MANY_PROOFS else news
    proofs = _proofs({name: table for name, table in others.items() if name not in some})
    rest = "`recipe show` prints their tables, and -v all of them here\n" if finished.packages or proofs else ""
    return Results(whole, "".join([*some.values(), proofs, _in_one_line(finished.packages), rest]), packages)


def _proofs(tables: Mapping[str, str]) -> str:
    """Return what the texts of engines prove, below the names of the variants."""
    lines = []
    for name, table in tables.items():
        if proof := plans.in_table(table):
            lines += [f"{name}:", *proof]
    return "\n".join([plans.HEAD, *lines, ""]) if lines else ""


def _in_one_line(packages: Mapping[str, Path]) -> str:
    if not packages:
        return ""
    folder = Path(os.path.commonpath([path.parent for path in packages.values()]))
    count = lists.counted(len(packages), "package")
    return f"{count} in {shown(folder)}: {lists.first_of(list(packages), _NAMED)}\n"
