"""The folder for packages: refused before anything is built where packages would damage what is there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from engine.builder.variant import PlannedVariant
from engine.errors import UsageError
from engine.store.materialize import PREVIOUS, refuse_strangers
from engine.system import folders

_HINT = "name another folder with -o; without -o, packages go to build/ of the project"


def refuse(out: Path, *, chosen: bool, store: Path, variants: Sequence[PlannedVariant]) -> None:
    """Raise an error if packages cannot be written to `out`, or if a package would replace something else.

    `chosen` says whether the user has named the folder. Only then may the folder not contain the store, a recipe or a
    source. Raises UsageError, StoreError, and OSError for a folder that cannot be read.
    """
    folders.refuse_unwritable(out, f"packages cannot go to {out}", _HINT)
    belongings = _belongings(store, variants)
    if chosen:
        real = _real(out)
        if real.parent == real:
            raise _refused(out, "it is the root of the file system")
        if PREVIOUS in real.parts:
            raise _refused(out, f"builds move older packages to folders `{PREVIOUS}`, and delete them there")
        if real == _real(Path.home()):
            raise _refused(out, "it is your home folder")
        _refuse_overlap(out, out, belongings)
    for variant in variants:
        if any(job.traits.delivers for job in variant.jobs):
            _refuse_overlap(out, out / variant.name, belongings)
            refuse_strangers(out / variant.name)


def _belongings(store: Path, variants: Sequence[PlannedVariant]) -> dict[Path, str]:
    """Return the real paths of what packages must not touch, each with a description."""
    recipes = (Path(path) for variant in variants for path in variant.loaded.files)
    uris = (source.uri for each in variants for job in each.jobs for source in job.traits.sources.values())
    files = (Path(uri.removeprefix("file:")) for uri in uris if uri.startswith("file:"))
    return {
        _real(store): "the store",
        **dict.fromkeys(map(_real, recipes), "the recipe"),
        **dict.fromkeys(map(_real, files), "a source of the recipe"),
    }


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
