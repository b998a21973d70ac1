"""How a lock calls what a recipe names, wherever the recipe's project lies."""

from __future__ import annotations

from pathlib import Path

from engine.builder.lookup import Variant
from engine.key import leaves, text_of
from engine.lockfile.content import Lock
from engine.recipe.paths import PATH_FIELDS
from engine.step import Source

_HUBS = ("hf:", "timm:")


def is_on_hub(source: Source) -> bool:
    """Say whether a source is a hub's repository: locked by its commit, not by its content."""
    return source.uri.startswith(_HUBS)


def name_of(source: Source, variant: Variant) -> str:
    """Return how a lock calls a source: a path from the project's root, or what the recipe says, a hub's @REVISION."""
    if is_on_hub(source):
        return f"{source.uri}@{source.revision or 'main'}"
    said = variant.loaded.portable_name(source.uri) or _inside(variant.loaded.project, source.uri)
    return said if source.part == "all" else f"{said} ({source.part})"


def _inside(project: Path, uri: str) -> str:
    """Return a file below the project by its path there; that is how steps of other packages may name one."""
    path = Path(uri.removeprefix("file:"))
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else uri


def row_of(name: str, locked: str) -> str:
    """Return a locked source as the row that it is in a key: its digest, or for a hub's `hf:REPO@COMMIT`."""
    return f"{_asked(name).rpartition('@')[0]}@{locked}" if name.startswith(_HUBS) else locked


def pins(lock: Lock) -> dict[str, str]:
    """Return the commits of a lock's hub revisions as `Lookup` takes them."""
    return {_asked(name): commit for name, commit in lock.sources.items() if name.startswith(_HUBS)}


def _asked(name: str) -> str:
    """Return how the hub knows a source: timm's models are repositories, too."""
    return name.replace("timm:", "hf:timm/", 1) if name.startswith("timm:") else name


def recipe_rows(variant: Variant) -> dict[str, str]:
    """Return what a variant's recipe says beyond the defaults, with paths as the recipe has them."""
    loaded = variant.loaded
    fields = loaded.recipe.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    rows = {name: text_of(value) for name, value in leaves("", fields)}
    return {
        name: (loaded.portable_name(value) or value) if any(each.is_called(name) for each in PATH_FIELDS) else value
        for name, value in rows.items()
    }
