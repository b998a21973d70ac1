"""Which job takes what from which, as a reader of the documentation would draw it."""

from __future__ import annotations

from collections.abc import Mapping

TEXT = {
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
"""The jobs of a text model in int8, each after those that it takes something from."""


def split(jobs: str, row: str, needs: Mapping[str, tuple[str, ...]] = TEXT) -> tuple[dict[str, str], str]:
    """Return which of some jobs `why` can be sure of, with their cause, and those that come behind one of these."""
    chosen = jobs.split()
    behind = {job for job in chosen if _above(job, needs) & set(chosen)}
    return {job: row for job in chosen if job not in behind}, " ".join(behind)


def _above(job: str, needs: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {job for need in needs[job] for job in (need, *_above(need, needs))}
