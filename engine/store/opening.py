"""Open a store: whether it is the user's own is checked here, and the remote is put behind it."""

# Only this module makes a `Store`, and only it joins one with a remote, so that no command forgets the check.

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StoreError, UnusableStoreError
from engine.store import revocations
from engine.store.disk import explained
from engine.store.store import Store
from engine.system import own_stores

if TYPE_CHECKING:
    from engine.store.remote.tier import Tier

REMOTE = "RECIPE_REMOTE"


def open_store(root: Path, *, afresh: bool = False, project: Path | None = None) -> Store:
    """Open the store at `root`, with the remote that the settings of `project` name, if any, behind it.

    A missing store is made. Raises UnusableStoreError, and UsageError for somebody else's store and for wrong settings.
    `afresh` is that of `Store`.
    """
    folder = root.absolute()
    try:
        with explained(folder):
            own_stores.enter(str(folder))
        store = Store(folder, afresh=afresh)
    except StoreError as error:
        raise UnusableStoreError(error.what, error.facts, error.hint) from error
    if project is not None:
        join(store, project)
    return store


def join(store: Store, project: Path, *, url: str = "", brief: bool = True) -> Tier | None:
    """Put the remote of the settings behind a store and return it; None without a remote. Raises UsageError.

    `brief` is for builds, which go on without a remote that is slow; a command that is about the remote is patient.
    """
    if not (url or _is_named(project)):
        return None
    from engine.store.remote import settings
    from engine.store.remote.tier import Tier

    chosen = settings.of(project, os.environ, url=url)
    if chosen is None:
        return None
    store.tier = tier = Tier(store, chosen, brief=brief)
    return tier


def _is_named(project: Path) -> bool:
    """Say whether anything may name a remote, without importing what reads settings."""
    user = revocations.folder() / "config.toml"
    return bool(os.environ.get(REMOTE)) or os.path.lexists(user) or os.path.lexists(project / "recipe.toml")
