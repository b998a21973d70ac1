"""Store the plan of a finished build, so that a later build in which only sources changed does not plan again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import engine
from engine import plugins
from engine.api import Session
from engine.builder import planning_reads, stored
from engine.builder.code import closure
from engine.builder.examining import boards, newer, not_verified
from engine.builder.job import Job
from engine.builder.lookup import Lookup
from engine.builder.summary import Summary
from engine.errors import Exit
from engine.events import Finished
from engine.report import choices, outputs
from engine.store import stored_plan
from engine.store.stored_plan import StoredPlan


def store_plan(
    path: str,
    token: bytes,
    session: Session,
    finished: Finished,
    summaries: Mapping[str, tuple[Summary, str]],
    *,
    fixed: frozenset[str],
) -> None:
    """Store the plan of a build beside the snapshot at `path`. Raises OSError, UserError.

    `fixed` is what the function of that name yields for the session.

    No plan is stored for a build with a lock, and for a build in which a job has no record, waits for hardware or
    makes the build print a warning.
    """
    lookup = session.lookup
    if lookup.lock is not None or finished.exit is not Exit.OK:
        return
    if any(lookup.away(job) is not None for job in session.jobs):
        return
    for variant in session.variants:
        records = summaries[variant.name][0].records
        if any(job.name not in records or stored.has_warnings(job, records[job.name]) for job in variant.jobs):
            return
    plan = StoredPlan.new(
        list(_variants(session, finished, summaries)),
        fixed={*fixed, *planning_reads.names(), *_source_files(lookup, session.jobs, local=False)},
        code=_code(session),
        machine=lookup.rows.machine,
        tables={name: table for name, (_, table) in summaries.items()},
        abstract=[str(path) for path in session.abstract],
        packages={name: str(place) for name, place in finished.packages.items()},
    )
    place = stored_plan.path_beside(path)
    lookup.store.write(Path(place), plan.sealed(place, token))


def fixed(session: Session) -> Iterator[str]:
    """Yield all files and folders from which the plan and its keys were made, except the files of sources."""
    for variant in session.variants:
        yield from (str(path) for path in variant.loaded.files)
    yield from session.lookup.rows.watched().paths
    yield from map(str, session.abstract)
    yield from map(str, session.locks)
    yield str(session.selection.project / "recipe.toml")
    for module in plugins.loaded():
        yield from (str(path) for path in closure.of("", (module,)).watched)
    yield from _planned_by()
    yield from plugins.listings()
    yield from (entry for entry in sys.path if not Path(entry).exists())  # a tool may appear there
    ours = Path(engine.__file__).parent.rglob("*")
    # Python writes into __pycache__ at any time.
    yield from (str(path) for path in ours if "__pycache__" not in path.parts)


def _planned_by() -> Iterator[str]:
    """Yield the files of all modules in this process that belong neither to this program nor to its environment.

    Planning may import modules that no key covers: what they shape reaches the keys as options.
    """
    places = tuple(f"{each}/" for each in (sys.prefix, sys.base_prefix, Path(engine.__file__).parent))
    files = (getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values()))
    yield from (file for file in files if isinstance(file, str) and not file.startswith(places))


def _variants(
    session: Session, finished: Finished, summaries: Mapping[str, tuple[Summary, str]]
) -> Iterator[stored_plan.Fields]:
    lookup = session.lookup
    for variant in session.variants:
        summary, _ = summaries[variant.name]
        package = finished.packages.get(variant.name)
        yield {
            **stored.fields_of(variant, summary.records, lookup.own_rows),
            "inputs": sorted(_source_files(lookup, variant.jobs, local=True)),
            "outputs": sorted(set(outputs.files(lookup.store, summary.records.values(), package))),
            "model": summary.facts is not None,
            "choice": choices.headline(summary),
            "not_verified": not_verified(variant),
            "notes": [*boards([variant]), *newer([variant])],
            "sections": any(job.step.section is not None for job in variant.jobs),
        }


def _source_files(lookup: Lookup, jobs: Iterable[Job], *, local: bool) -> set[str]:
    """Return the files of sources that are paths (`local`), or of sources of other kinds, such as Python packages."""
    every = {source for job in jobs for source in job.traits.sources.values()}
    return {name for each in every if each.uri.startswith(stored.LOCAL) is local for name in lookup.source_rows(each)}


def _code(session: Session) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Return the files of each step's code with their stat rows, by the digest of the code."""
    files: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for job in session.jobs:
        content = session.lookup.own_rows(job)["code"]
        if content not in files:
            files[content] = [(str(path), tuple(row)) for path, row in session.lookup.rows.code_read(job)]
    return files
