"""List the project's recipes: which are up to date, which would rebuild, which failed or wait for hardware."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine import snapshot
from engine.commands import options
from engine.errors import Exit, UserError
from engine.recipe.project import root_of
from engine.system import folders, regular

if TYPE_CHECKING:
    from engine.api import Session

_ENDINGS = (".yaml", ".yml")
_RECIPE = re.compile(rb"^(model|extends)[ \t]*:", re.MULTILINE)
"""What a YAML file has that is a recipe."""
_NAMED = re.compile(rb"^(name|extends)[ \t]*:", re.MULTILINE)
_ABSTRACT = re.compile(rb"^abstract[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class ListedRecipe:
    """A recipe of the project, and what a build of it would do."""

    recipe: str
    state: str
    """`up to date`, `cached` (last built otherwise), `would rebuild`, `never built`, `failed`, `waiting` or `wrong`."""
    names: Sequence[str] = ()
    """The names of the variants; () where a snapshot answered."""
    jobs: int | None = None
    rebuild: int | None = None
    """How many of the jobs a build would run or look for."""
    why: str = ""
    """The hardware that jobs wait for, or the error of a wrong recipe."""

    @property
    def in_words(self) -> str:
        """The state with what else is known of it."""
        if self.state in ("would rebuild", "failed") and self.rebuild:
            jobs = f"{self.rebuild} of {self.jobs} jobs"
            return f"would rebuild {jobs}" if self.state == "would rebuild" else f"failed: {jobs} are left"
        if self.state == "cached":
            return "cached: a build delivers it without work"
        return f"waiting for {self.why}" if self.state == "waiting" and self.why else self.state


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe list`."""
    options.add_cache(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print each recipe of the project with its state. A wrong recipe is one of the states, and no error."""
    from engine.report import grid

    every = [_listed(path, arguments.cache) for path in (_recipes(root_of("recipe.yaml")))]
    if arguments.json:
        print(json.dumps([asdict(each) for each in every], ensure_ascii=False, indent=1))
    elif every:
        for line, each in zip(grid.lines([(each.recipe, each.in_words) for each in every]), every, strict=True):
            print(line)
            if each.state == "wrong":
                print(f"  {each.why}")
    else:
        print("this project has no recipe; `recipe new MODEL` writes a first one")
    return Exit.OK


def _recipes(root: str) -> Iterator[str]:
    """Yield the paths of the recipes in a project, as seen from here, without those that others only extend."""
    for path in folders.files_beside(root):
        if path.endswith(_ENDINGS):
            with contextlib.suppress(OSError):
                text = regular.read(path)
                if _RECIPE.search(text) and _NAMED.search(text) and not _ABSTRACT.search(text):
                    yield os.path.relpath(path)


def _listed(path: str, cache: Path | None) -> ListedRecipe:
    """Return the state of a recipe: from the snapshot of `recipe build PATH`, else from a plan."""
    words = [path] if cache is None else [path, "--cache", str(cache)]
    changes = snapshot.compare(words)
    if changes is not None and not changes.names:
        return ListedRecipe(path, "waiting" if changes.snapshot["exit"] == Exit.WAITING else "up to date", rebuild=0)
    from engine import api
    from engine.recipe.project import store_of

    try:
        if not store_of(cache, Path(path)).is_dir():  # a list makes no store
            planned = api.plan(path)
            jobs = sum(len(each.jobs) for each in planned)
            return ListedRecipe(path, "never built", [each.name for each in planned], jobs)
        return _planned(path, api.session(path, remote=False, cache=cache))
    except UserError as error:
        return ListedRecipe(path, "wrong", why=str(error).splitlines()[0])


def _planned(path: str, session: Session) -> ListedRecipe:
    """Return the state of a recipe by its jobs, and by the last build of each variant."""
    from engine.store import history

    names, jobs = [each.name for each in session.variants], len([*session.jobs])
    pasts = [history.of(session.lookup.store.notes, each.subject) for each in session.variants]
    findings = session.findings() if any(pasts) else []  # what was never built needs no look at its model
    session.lookup.store.leave()
    if not findings:
        return ListedRecipe(path, "never built", names, jobs)
    left = [each for each in findings if each.state != "cached"]
    ready = [each for each in left if each.state != "unknown"]
    waits = ", ".join(sorted({each.waits_for for each in ready if each.waits_for is not None}))
    heads = [(each.subject.fields, session.lookup.heads.of(each.subject)) for each in session.variants]
    tried = [past for past, (own, head) in zip(pasts, heads, strict=True) if own == head.recipe]
    if any(past and past[-1].state == "failed" for past in tried):
        state = "failed"
    elif ready and all(each.waits_for for each in ready):
        return ListedRecipe(path, "waiting", names, jobs, len(left), waits)
    elif left:
        state = "would rebuild"
    else:
        state = "up to date" if all(own == head.results.recipe for own, head in heads) else "cached"
    return ListedRecipe(path, state, names, jobs, len(left))
