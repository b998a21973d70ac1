"""What `recipe why` and `recipe check` know from the last build, as long as its plan stands: recipes are not read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine import snapshot
from engine.store.stored_plan import StoredPlan

if TYPE_CHECKING:
    from engine.builder.findings import Finding
    from engine.builder.lookup import Lookup
    from engine.builder.selection import Reading


def unchanged(words: Sequence[str]) -> StoredPlan | None:
    """Return the stored plan of the build with the arguments `words`, if nothing has changed since; else None."""
    changes = snapshot.compare(words)
    return None if changes is None or changes.names else StoredPlan.of(changes)


def examined(words: Sequence[str], reading: Reading) -> tuple[Lookup, list[Finding]] | None:
    """Return the look-up and the findings of `recipe why` for the jobs of the last build with the arguments `words`.

    `reading` are the same options, for reading recipes. Returns None without a stored plan, and if more than the
    content of sources has changed since.
    """
    changes = snapshot.compare(words)
    plan = StoredPlan.of(changes) if changes is not None else None
    if changes is None or plan is None or plan.reading(changes.names) is None:
        return None
    from engine.builder.findings import examine
    from engine.builder.stored import StoredLookup, loading, variant_of
    from engine.store.opening import open_store

    every = list(plan.every())
    lookup = StoredLookup(open_store(Path(changes.path).parent.parent), plan, changes, every)
    variants = (variant_of(fields, loading(reading)) for fields in every)
    findings = [finding for variant in variants for finding in examine(variant, lookup)]
    lookup.store.leave()
    return lookup, findings
