"""The folder for packages: refused before anything is built where packages would damage what is there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.builder.variant import PlannedVariant
from engine.errors import UsageError
from engine.store.materialize import PREVIOUS, refuse_strangers
from engine.system import writable

_HINT = "name another folder with -o; without -o, packages go to build/ of the project"


def refuse(out: Path, *, chosen: bool, store: Path, variants: Sequence[PlannedVariant]) -> None:
    """Raise an error if packages cannot be written to `out`, or if a package would replace something else.

    `chosen` says whether the user has named the folder. Only then may the folder not contain the store, a recipe or a
    source. Raises UsageError, StoreError, and OSError for a folder that cannot be read.
    """
    writable.refuse(out, f"packages cannot go to {out}", _HINT)
    belongings = dict(_belongings(store, variants))
    if chosen:
        real = _real(out)
        if real.parent == real:
            raise _refused(out, "it is the root of the file system")
        if PREVIOUS in real.parts:
            raise _refused(out, f"builds move older packages to folders `{PREVIOUS}`, and delete them there")
        if real == _real(Path(os.path.expanduser("~"))):
            raise _refused(out, "it is your home folder")
        _refuse_overlap(out, out, belongings)
    for variant in variants:
        if any(job.traits.delivers for job in variant.jobs):
            place = out / variant.name
            _refuse_overlap(out, place, belongings)
            refuse_strangers(place)


def _belongings(store: Path, variants: Sequence[PlannedVariant]) -> Iterator[tuple[Path, str]]:
    """Yield the real paths of what packages must not touch, each with a description."""
    yield _real(store), "the store"
    for variant in variants:
        for path in variant.loaded.files:
            yield _real(Path(path)), "the recipe"
        for job in variant.jobs:
            for source in job.traits.sources.values():
                scheme, _, rest = source.uri.partition(":")
                if scheme == "file":
                    yield _real(Path(rest)), "a source of the recipe"


def _refuse_overlap(out: Path, place: Path, belongings: dict[Path, str]) -> None:
    real = _real(place)
    for path, name in belongings.items():
        if real == path or path in real.parents:
            where = "is" if real == path else "lies in"
            raise _refused(out, f"{place} {where} {name}, {path}")
        if real in path.parents:
            raise _refused(out, f"{place} contains {name}, {path}")


def _refused(out: Path, why: str) -> UsageError:
    return UsageError(f"packages cannot go to {out}", [why], _HINT)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
