"""Plan files: all that a new plan was made from, so that a snapshot watches it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from engine import plugins
from engine.builder import planning_reads
from engine.builder.code import closure
from engine.machine import tools
from engine.recipe.path_ways import mark_of
from engine.recipe.project import project_of
from engine.store import revocations
from engine.store.record import Record
from engine.system.file_systems import mount_folder, mount_number

if TYPE_CHECKING:
    from engine.api import Session
    from engine.recipe.path_ways import Mark


def around(build: Session, disks: Sequence[str]) -> dict[str, Any] | None:
    """Return what a plan depends on beside the content of files; None if a project has another root meanwhile."""
    way: dict[str, Mark] = {}
    for variant in reversed(build.variants):
        way |= variant.loaded.way  # of two marks of one place, the one that was read first counts
    way |= {folder: mark_of(folder) for folder in map(mount_folder, disks) if folder is not None}
    recipes = {path.parent: path for path in build.selection.paths}  # abstract recipes, too
    roots = {folder: project_of(path) for folder, path in recipes.items()}
    if any(roots[variant.loaded.path.parent] != variant.loaded.project for variant in build.variants):
        return None
    variables = build.lookup.rows.watched().variables
    return {
        "notes": {str(build.lookup.heads.path(variant.subject)) for variant in build.variants},
        "way": way,
        "roots": {str(recipes[folder]): str(root) for folder, root in roots.items()},
        "mounts": dict(filter(None, map(mount_number, disks))),
        "variables": None if plugins.every() else variables,  # plugins may read any variable
        "environment": planning_reads.environment(),
    }


def changed_meanwhile() -> bool:
    """Tell whether tools or plugins changed during the build: a snapshot would hold the files after the change."""
    return tools.changed() or plugins.changed()


def folders(build: Session, *, waits: bool) -> set[str]:
    """Return the import path's folders, watched as outputs: a package may come, and the build may create `build/`."""
    every = {entry for entry in sys.path if Path(entry).is_dir()}
    if waits:  # another machine may add records to this folder
        every.add(str(build.lookup.store.layout.records))
    return every


def fixed(build: Session, records: Iterable[Record]) -> Iterator[str]:
    """Yield all that the plan and its keys were made from, except files of sources. `records` are those of the jobs."""
    store = build.lookup.store
    yield from planning_reads.foreign(store.root)
    if store.tier is not None or any(record.origin for record in records):
        yield str(revocations.folder() / revocations.LIST)  # a key that is revoked later ends the snapshot
    for variant in build.variants:
        yield from (str(path) for path in variant.loaded.files)
    yield from build.lookup.rows.watched().paths
    yield from map(str, (*build.abstract, *build.locks, build.selection.project / "recipe.toml"))
    for module in plugins.loaded():
        yield from (str(path) for path in closure.of("", (module,)).watched)
    yield from _planned_by()
    yield from plugins.listings()
    yield from (entry for entry in sys.path if not Path(entry).exists())  # a tool may appear there
    # A new step changes its folder. Python writes into __pycache__ at any time.
    ours = Path(engine.__file__).parent.rglob("*")
    yield from (str(path) for path in ours if "__pycache__" not in path.parts)


def _planned_by() -> Iterator[str]:
    """Yield the files of foreign modules in this process: what they shape when planning reaches the keys as options."""
    places = tuple(f"{each}/" for each in (sys.prefix, sys.base_prefix, Path(engine.__file__).parent))
    files = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    yield from (file for file in files if isinstance(file, str) and not file.startswith(places))


def whole_plan(build: Session) -> dict[str, Any]:
    """Return the parts of a plan cache that are about no single variant."""
    files: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for job in build.jobs:
        content = build.lookup.own_rows(job)["code"]
        if content not in files:
            files[content] = [(str(path), tuple(row)) for path, row in build.lookup.rows.code_read(job)]
    selection = build.selection
    return {
        "code": files,
        "machine": dict(build.lookup.rows.machine),
        "project": str(selection.project),
        "jobs": selection.jobs,
        "set": selection.set,
        "only": selection.only,
        "allow": tuple(map(str, selection.allow)),
    }
