"""Renew the snapshot and the stored plan after a build was resumed: only what concerns the resumed variants changes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine import snapshot
from engine.builder import stored
from engine.builder.stored import StoredLookup
from engine.builder.variant import PlannedVariant
from engine.errors import Exit, UserError
from engine.events import Finished
from engine.report import outputs
from engine.report.repeated import RepeatedLines
from engine.snapshot import ChangedFiles
from engine.store import stored_plan
from engine.store.file_systems import tells_changes
from engine.store.record import Record
from engine.store.stat_cache import TICK_NS
from engine.store.stored_plan import Fields, StoredPlan
from engine.system import watched

_COMPLETE = ("built", "up to date")
"""The states of a build after which a snapshot with a stored plan may be kept."""


@dataclass(frozen=True)
class Resumed:
    """A build that was resumed: the last build's snapshot and plan, and the variants that are built again."""

    changes: ChangedFiles
    plan: StoredPlan
    lookup: StoredLookup
    before: Mapping[int, Fields]
    """The stored variants that are built again, by number."""
    variants: Mapping[int, PlannedVariant]
    lines: RepeatedLines


def keep(resumed: Resumed, finished: Finished, keys: Mapping[tuple[str, str], str], texts: Mapping[str, str]) -> None:
    """Write the snapshot and the stored plan of a build that ended without a failure.

    `keys` maps the names of a variant and a job to the digest of the job's key. `texts` are those that the
    next build prints to standard output.
    """
    if finished.exit is not Exit.OK or finished.state not in _COMPLETE:
        return
    with contextlib.suppress(OSError, UserError, ValueError):  # without a snapshot the next run only takes longer
        _keep(resumed, finished, keys, texts)
    resumed.lookup.store.leave()


def _keep(
    resumed: Resumed, finished: Finished, keys: Mapping[tuple[str, str], str], printed: Mapping[str, str]
) -> None:
    """Write the new snapshot and stored plan.

    All files except those of the resumed variants keep the stat rows of the old snapshot: if such a file has changed
    since, the next build sees the change.
    """
    changes, plan, store = resumed.changes, resumed.plan, resumed.lookup.store
    records = {
        number: {job.name: store.read(keys[variant.name, job.name]) for job in variant.jobs}
        for number, variant in resumed.variants.items()
    }
    new: dict[int, Fields] = {}
    for number, variant in resumed.variants.items():
        whole = {name: record for name, record in records[number].items() if record is not None}
        package = finished.packages.get(variant.name)
        if len(whole) < len(variant.jobs):
            return
        if any(stored.has_warnings(job, whole[job.name]) for job in variant.jobs):
            return
        new[number] = {
            **resumed.before[number],
            **stored.fields_of(variant, whole, resumed.lookup.own_rows),
            "outputs": sorted(set(outputs.files(store, whole.values(), package))),
        }
    read = _read(resumed)
    written = sorted({name for fields in new.values() for name in fields["outputs"]})
    if read is None or not all(map(tells_changes, (*changes.names, *written))):
        return
    rows = _settled_rows(written)
    if rows is None or not _are_whole(resumed, records, finished):
        return
    token = os.urandom(snapshot.TOKEN_BYTES)
    texts = {**printed, "json": resumed.lines.json_with(resumed.before.values(), new.values())}
    parts = changes.snapshot["watched"]
    known = (name for name in written if any(watched.may_hold(part, name) for part in parts))
    plan.share(name for name in known if not _is_own(name, resumed))
    dropped = {name for number, fields in new.items() for name in plan.replace(number, fields)}
    edited = watched.edited(parts, dropped - set(written), {**rows, **read})
    content = {**changes.snapshot, **texts, "token": token, "watched": edited}
    place = stored_plan.path_beside(changes.path)
    store.write(Path(place), plan.sealed(place, token))
    store.write(Path(changes.path), snapshot.sealed(changes.path, content))


def _read(resumed: Resumed) -> dict[str, watched.Row] | None:
    """Return the stat rows that the changed files had when they were read; None if a variant reads other files now."""
    rows: dict[str, watched.Row] = {}
    for number, variant in resumed.variants.items():
        own = {
            name: row
            for job in variant.jobs
            for source in job.traits.sources.values()
            if source.uri.startswith(stored.LOCAL)
            for name, row in resumed.lookup.source_rows(source).items()
        }
        if sorted(own) != resumed.before[number]["inputs"]:
            return None
        rows |= own
    return {name: rows[name] for name in resumed.changes.names}


def _is_own(name: str, resumed: Resumed) -> bool:
    """Say whether exactly one variant had the output file `name`, and this variant is built again."""
    return sum(name in fields["outputs"] for fields in resumed.before.values()) == 1


def _settled_rows(names: Iterable[str]) -> dict[str, watched.Row] | None:
    """Return the stat rows of files, read when any further change of a file gives the file another stat row.

    Returns None if a file is missing.
    """
    rows = {name: watched.row_of(name) for name in names}
    newest = max((row[4] for row in rows.values() if row is not None), default=0)
    left_ns = newest + TICK_NS - time.time_ns()
    if left_ns > 0:
        time.sleep(min(left_ns, TICK_NS) / 1e9)
        rows = {name: watched.row_of(name) for name in rows}
    known = {name: row for name, row in rows.items() if row is not None}
    return known if len(known) == len(rows) else None


def _are_whole(resumed: Resumed, records: Mapping[int, Mapping[str, Record | None]], finished: Finished) -> bool:
    for number, variant in resumed.variants.items():
        own = {job.name: record for job in variant.jobs if (record := records[number][job.name]) is not None}
        delivered = next((own[job.name] for job in variant.jobs if job.traits.delivers), None)
        if not outputs.are_whole(resumed.lookup.store, own.values(), delivered, finished.packages.get(variant.name)):
            return False
    return True
