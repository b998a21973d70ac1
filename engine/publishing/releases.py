"""Find a package that was published before by its digest, in the store or at the remote (ADR 93)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from engine.errors import StoreError, UsageError, UserError
from engine.kit.triton import config as configs
from engine.publishing.package import PackageContent, read
from engine.recipe.project import project_of, store_of
from engine.store import releases
from engine.store.opening import open_store
from engine.store.record import Record
from engine.store.releases import Release
from engine.store.remote import settings
from engine.store.remote.objects import RefusedError
from engine.store.remote.releases import ReleaseTier
from engine.store.store import Store
from engine.text.lists import counted

_DIGITS = re.compile("[0-9a-f]{8,64}")
_LIST = "`recipe cache releases` lists all"
_MEND = (
    "`recipe cache verify --remote {} --deep --remove-damaged` removes what is damaged there; "
    "`recipe publish` where the package was built then writes it again"
)


def here(cache: Path | None) -> tuple[Store, ReleaseTier | None]:
    """Open the store and the remote of the working directory. Raises UsageError where there is neither."""
    path = Path("recipe.yaml")
    root, chosen = store_of(cache, path), settings.of(project_of(path), os.environ)
    if chosen is None and not root.is_dir():
        hint = "RECIPE_REMOTE names the team's remote, and --cache another store"
        raise UsageError(f"there is no store at {root}, and no remote is set", hint=hint)
    store = open_store(root)
    return store, None if chosen is None else ReleaseTier(store, chosen, brief=False)


def keep(store: Store, tier: ReleaseTier | None, content: PackageContent, record: Record) -> tuple[list[str], str]:
    """Keep a package in the store, and at a remote to which builds push; return where, and why not elsewhere."""
    store.use(record.digest)
    release = Release(content.sha256, record.digest, content.recipe)
    if not releases.keep(store, release) or store.read(record.digest) is None:
        return [], f"the store {store.root} cannot be written, or has lost the record"
    places = [str(store.root)]
    try:
        if tier is not None and tier.settings.pushes:
            tier.keep(release, record)
            places.append(tier.shown)
    except (UserError, OSError) as error:
        return places, str(error)
    return places, ""


def find(digits: str, store: Store, tier: ReleaseTier | None) -> tuple[PackageContent, Record]:
    """Return the release whose SHA-256 or key begins with some digits, and its record; its files are in the store now.

    From a remote, the signature and the SHA-256 of every file are checked. Raises UserError.
    """
    noted, remote, looked = matching(digits, store, tier)
    hint, shown = _LIST, "" if tier is None else tier.shown
    for release in noted:
        try:
            return _package(store, store.read(release.key), release)
        except StoreError as error:
            looked.append(f"{store.root}: {error.what}")
    for release, raw in remote.items():
        try:
            if tier is not None:
                return _package(store, tier.take(release, raw), release)
        except (StoreError, OSError) as error:
            looked.append(f"{shown}: {error.what if isinstance(error, StoreError) else error}")
            if isinstance(error, StoreError):
                hint = error.hint or (_MEND.format(shown) if isinstance(error, RefusedError) else hint)
    if not (noted or remote) and (record := _of_key(_plain(digits), store)):
        try:
            return _package(store, record)
        except StoreError as error:
            looked.append(f"{store.root}: {error.what}")
    raise StoreError(f"no package with a sha256 or key that begins with {digits} can be had", looked, hint)


def _plain(digits: str) -> str:
    """Return the digits of a digest that may be written like `sha256:3FA9C1D2`."""
    return digits.lower().removeprefix("sha256:")


def _of_key(digits: str, store: Store) -> Record | None:
    """Return the store's only record of a key that begins with some digits. Raises UsageError for no package's."""
    records = [store.read(path.stem) for path in store.layout.records.glob(f"{digits}*.json")]
    record = records[0] if len(records) == 1 else None
    if record is not None and not any(name.endswith(f"/{configs.FILE}") for name in record.files):
        raise UsageError(f"the key {record.digest} is of the job {record.job!r}, which makes no package", hint=_LIST)
    return record


def matching(
    digits: str, store: Store, tier: ReleaseTier | None
) -> tuple[list[Release], dict[Release, bytes], list[str]]:
    """Return the releases of the store and of the remote that match some digits, and where was looked.

    Raises UsageError for digits that are no digest, and for those of several packages.
    """
    if _DIGITS.fullmatch(_plain(digits)) is None:
        hint = "write at least 8 hexadecimal digits of a sha256 or key that `recipe publish --list URL` prints"
        raise UsageError(f"{digits!r} is no digest of a release", hint=hint)
    digits = _plain(digits)
    noted = [release for release in releases.every(store) if release.matches(digits)]
    remote: dict[Release, bytes] = {}
    looked = [f"{store.root}: {_matches(noted)}", "no remote is set (RECIPE_REMOTE)"]
    if tier is not None:
        looked[1] = f"{tier.shown} is not read: no key is trusted (`recipe cache trust --key KEY`)"
        try:
            if not tier.settings.trust.is_empty:
                remote = tier.releases(digits)
                looked[1] = f"{tier.shown}: {_matches(remote)}"
                looked += [tier.trouble] if tier.trouble and not remote else []
        except StoreError as error:
            looked[1] = f"{tier.shown} cannot be read: {error.what}"
    if len({release.sha256 for release in (*noted, *remote)}) > 1:
        lines = sorted({f"sha256 {each.sha256}, key {each.key}, {each.recipe}" for each in (*noted, *remote)})
        raise UsageError(f"{digits} is the beginning of several releases", lines, "write more digits")
    return noted, remote, looked


def _matches(every: Collection[Release]) -> str:
    return f"{counted(len(every), 'release')} {'matches' if len(every) == 1 else 'match'}"


def _package(store: Store, record: Record | None, release: Release | None = None) -> tuple[PackageContent, Record]:
    """Return a package of the store. Raises StoreError with the reason why it cannot be had, or is another one."""
    if record is None or store.is_on_remote(record):
        raise StoreError("its record or its files are missing or damaged")
    store.use(record.digest)
    if not store.counts(record):
        raise StoreError("the key that signed it is revoked")
    if store.find(record.key) is None:
        raise StoreError("its files are missing or damaged")
    recipe = record.job if release is None else release.recipe
    content = read(store.artifact_path(record.artifact), recipe=recipe, key=str(record.digest))
    if release is not None and content.sha256 != release.sha256:
        raise StoreError(f"a later build of its key has left another package, sha256 {content.sha256}")
    return content, record
