"""Names of sources and fields in a lock: the same wherever the recipe's project lies on a disk."""

from __future__ import annotations

from pathlib import Path

from engine.builder.variant import PlannedVariant
from engine.key import leaves, text_of
from engine.lockfile.content import Lock
from engine.recipe import paths
from engine.recipe.paths import PATH_FIELDS
from engine.step import Source


def is_on_hub(source: Source) -> bool:
    """Say whether a source is a repository on a hub, for which a lock has a commit instead of a digest."""
    return paths.is_on_hub(source.uri)


def name_of(source: Source, variant: PlannedVariant) -> str:
    """Return a source's name in a lock.

    In a lock, the name of a hub's repository is `hf:REPO@REVISION`. The name of a local file is its path as the recipe
    writes the path, or a path relative to the project's folder.
    """
    if is_on_hub(source):
        return f"{source.uri}@{source.revision or 'main'}"
    name = variant.loaded.portable_name(source.uri) or _inside(variant.loaded.project, source.uri)
    return name if source.part == "all" else f"{name} ({source.part})"


def _inside(project: Path, uri: str) -> str:
    """Return a path inside the project as a path relative to the project's folder.

    The path may be absolute, because a step of another Python package may name a file by an absolute path.
    """
    path = Path(uri.removeprefix("file:"))
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else uri


def row_of(name: str, locked: str) -> str:
    """Return a locked source as the row of a key: its digest, or `hf:REPO@COMMIT` for a hub's repository."""
    return f"{paths.hub_name(name).rpartition('@')[0]}@{locked}" if paths.is_on_hub(name) else locked


def pins(lock: Lock) -> dict[str, str]:
    """Return the commit of each hub revision in a lock, by `hf:REPO@REVISION`."""
    return {paths.hub_name(name): commit for name, commit in lock.sources.items() if paths.is_on_hub(name)}


def recipe_rows(variant: PlannedVariant) -> dict[str, str]:
    """Return the fields in which a variant's recipe differs from the defaults.

    A path in the returned fields is written as in the recipe.
    """
    loaded = variant.loaded
    fields = loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    rows = {name: text_of(value) for name, value in leaves("", fields)}
    return {
        name: (loaded.portable_name(value) or value) if any(each.is_called(name) for each in PATH_FIELDS) else value
        for name, value in rows.items()
    }
