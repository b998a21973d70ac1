"""Publishes a package as the next version: a claim, the files, the decision, and last what is served."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath

from engine.errors import StoreError
from engine.kit.triton import config as configs
from engine.kit.triton.config import Config
from engine.publishing import published_config
from engine.publishing.package import (
    MOST_BYTES,
    Listing,
    Manifest,
    PackageContent,
    PublishedModel,
    claim_name,
    manifest_name,
    manifest_of,
)
from engine.publishing.repository import LEASE, ModelRepository, turn
from engine.store.remote.background import together

STALE = 6 * 3600.0
"""The age in seconds at which a claim without a decision belongs to a killed publisher."""
SETTLE = 5.0
"""Seconds between the configurations of the models behind an entry in an object store, and that of the entry.

A server that polls a bucket reads one configuration after the other. If it read a model's configuration before its
change, and then the entry's after it, it would unload the entry until its next poll.
"""
_AT_ONCE = 4
"""Files that are written at the same time."""


class PublishState(StrEnum):
    """What publishing did."""

    PUBLISHED = "published"
    SERVED_AGAIN = "served-again"
    UNCHANGED = "unchanged"
    NEWER_SERVED = "newer-served"
    PLANNED = "planned"


@dataclass(frozen=True)
class Published:
    """The result: the version that has the package, and the files and configurations that were (to be) written."""

    state: PublishState
    version: int
    manifest: Manifest
    written: tuple[str, ...]
    serves: int | None
    """The version that the repository serves now."""
    damaged: Mapping[int, str]
    """Versions that should have this package, each with a file that is not as it was published."""


@dataclass(frozen=True, kw_only=True)
class PublishWaits:
    """How long a killed publisher's claim and turn count, and the pause before the entry, in seconds."""

    stale: float = STALE
    lease: float = LEASE
    settle: float = SETTLE


class Publisher:
    """Publishes one package into one repository."""

    def __init__(
        self,
        repository: ModelRepository,
        package: PackageContent,
        *,
        waits: PublishWaits,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._repository, self._package = repository, package
        self._waits, self._on_bytes = waits, on_bytes
        self._names = tuple(model.name for model in package.models)
        self._damaged: dict[int, str] = {}

    async def plan(self) -> Published:
        """Return what `publish` would do, and write nothing."""
        listing = await self._repository.listing()
        published = await self._published()
        published_config.refuse(self._package, published, self._repository.shown)
        current = published_config.current(self._package.name, published)
        known = await self._known(listing)
        if known is not None:
            state = PublishState.UNCHANGED if self._is_served(known, published) else PublishState.SERVED_AGAIN
            written = () if state is PublishState.UNCHANGED else self._configs()
            return Published(state, known.version, known, written, current, self._damaged)
        version = max(listing.numbers(self._package.name, self._names), default=0) + 1
        planned = manifest_of(self._package, version, 0.0)
        written = (*planned.files, *self._configs())
        return Published(PublishState.PLANNED, version, planned, written, current, self._damaged)

    async def publish(self) -> Published:
        """Publish the package. Raises UserError; what a failed or killed run leaves is never loaded."""
        listing = await self._repository.listing()
        published = await self._published()
        published_config.refuse(self._package, published, self._repository.shown)
        listing = await self._swept(listing)
        known = await self._known(listing)
        if known is not None:
            if self._is_served(known, published):
                return Published(PublishState.UNCHANGED, known.version, known, (), known.version, self._damaged)
            return await self._serve(known, again=True)
        version = await self._claimed(listing)
        return await self._serve(await self._stored(version), again=False)

    async def _published(self) -> dict[str, Config]:
        """Return the configurations that are there, by the names of the package's models. Raises StoreError."""
        there = {name: await _config(self._repository, name) for name in self._names}
        return {name: config for name, config in there.items() if config is not None}

    def _is_served(self, known: Manifest, published: Mapping[str, Config]) -> bool:
        """Say whether the entry serves a version and no other, and each config.pbtxt is as that version has it."""
        package = replace(self._package, recipe=known.recipe, key=known.key)
        for model in package.models:
            config = published.get(model.name)
            listed = () if config is None else published_config.versions(config)
            if known.version not in listed or (model is package.entry and len(listed) > 1):
                return False
            if config != published_config.parsed(published_config.text(model, package, known.version, listed).encode()):
                return False
        return True

    async def _known(self, listing: Listing) -> Manifest | None:
        """Return the newest version with this package. The bytes of its files are read, and damaged versions noted."""
        for owner, version in reversed(listing.decided()):
            if owner == self._package.name:
                decision = await decided(self._repository, owner, version)
                if decision.complete and decision.sha256 == self._package.sha256:
                    damaged = await self._damaged_file(listing, decision)
                    if not damaged:
                        return decision
                    self._damaged[version] = damaged
        return None

    async def _damaged_file(self, listing: Listing, decision: Manifest) -> str:
        """Return the name of a file that is not as it was published; "" where all are."""
        for name in listing.lacks(decision):
            return name
        for name, (size, sha256) in decision.files.items():
            if not await self._repository.is_whole(name, size, sha256):
                return name
        return ""

    async def _swept(self, listing: Listing) -> Listing:
        """Abandon claims of killed publishers, and remove the files of abandoned versions."""
        name = self._package.name
        decisions = {version for owner, version in listing.decided() if owner == name}
        for owner, version in listing.claimed():
            if owner != name:
                continue
            claim = claim_name(name, version)
            if version not in decisions:
                if time.time() - listing.entries[claim].modified < self._waits.stale:
                    continue
                tombstone = Manifest(name, version, complete=False, when=time.time())
                await self._repository.create(manifest_name(name, version), tombstone.to_bytes())
            decision = await decided(self._repository, name, version)
            if not decision.complete:
                await self._removed(listing, version, claim)
            await self._repository.remove(claim)  # last: what a killed sweep leaves is removed by the next one
        return await self._repository.listing()

    async def _removed(self, listing: Listing, version: int, claim: str) -> None:
        data = await self._repository.read(claim)
        claimed = self._names
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a claim that cannot be read
            claimed = json.loads(data or b"")["models"]
        for model in claimed:
            for entry in listing.entries:
                if PurePosixPath(entry).parts[:2] == (model, str(version)):
                    await self._repository.remove(entry)
            self._repository.remove_folder(f"{model}/{version}")

    async def _claimed(self, listing: Listing) -> int:
        """Take the next number. Two publishers never have one number."""
        version = max(listing.numbers(self._package.name, self._names), default=0) + 1
        who = {"host": socket.gethostname(), "process": os.getpid(), "token": secrets.token_hex(8)}
        data = json.dumps({**who, "models": self._names}).encode()
        while not await self._claims(version, data):
            version += 1
        return version

    async def _claims(self, version: int, data: bytes) -> bool:
        """Tell whether this publisher has claimed a number.

        Another publisher may have claimed, decided and removed its claim since the listing, and a server may check and
        write in two moments: the claim is read again.
        """
        claim = claim_name(self._package.name, version)
        if not await self._repository.create(claim, data) or await self._repository.read(claim) != data:
            return False
        if await self._repository.read(manifest_name(self._package.name, version), most=MOST_BYTES) is None:
            return True
        await self._repository.remove(claim)
        return False

    async def _stored(self, version: int) -> Manifest:
        """Write all files of a version, and decide that the version is complete."""
        for model in self._package.models:
            placed = model.placed(version)
            starter = f"{model.name}/{version}/{model.started_by}"
            await self._uploaded(model, version, [name for name in placed if name != starter])
            # Without config.pbtxt, Triton would load a folder that has this file.
            await self._uploaded(model, version, [name for name in placed if name == starter])
        decision = manifest_of(self._package, version, time.time())
        name = manifest_name(self._package.name, version)
        if not await self._repository.create(name, decision.to_bytes()):
            raise StoreError(
                f"version {version} of {self._package.name} was given up by another publisher, since it took too long",
                hint="publish again; the next number is taken",
            )
        await self._repository.remove(claim_name(self._package.name, version))
        return decision

    async def _uploaded(self, model: PublishedModel, version: int, names: list[str]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)
        placed = model.placed(version)

        async def one(name: str) -> None:
            async with limit:
                await self._repository.upload(name, placed[name], self._on_bytes)

        async with together() as group:
            for name in names:
                group.create_task(one(name))

    async def _serve(self, decision: Manifest, *, again: bool) -> Published:
        """Let the repository serve a complete version: first the models behind the entry, then the entry."""
        package, version = self._package, decision.version
        async with turn(self._repository, package.name, self._waits.lease) as own_turn:
            published = await self._published()
            published_config.refuse(package, published, self._repository.shown)
            current = published_config.current(package.name, published)
            files = () if again else tuple(decision.files)
            if current is not None and current > version and not again:
                return Published(PublishState.NEWER_SERVED, version, decision, files, current, self._damaged)
            before = await self._models_of(current)
            behind = [model for model in package.models if model is not package.entry]
            written: list[str] = []
            for model in (*behind, package.entry):
                if written and model is package.entry and current is not None and not self._repository.is_folder:
                    await asyncio.sleep(self._waits.settle)
                keeps = current is not None and model is not package.entry and model.name in before
                listed = tuple(sorted({version, current})) if keeps and current is not None else (version,)
                text = published_config.text(model, package, version, listed)
                name = f"{model.name}/{configs.FILE}"
                await own_turn.write(name, text.encode())
                written.append(name)
        state = PublishState.SERVED_AGAIN if again else PublishState.PUBLISHED
        return Published(state, version, decision, (*files, *written), version, self._damaged)

    async def _models_of(self, version: int | None) -> tuple[str, ...]:
        """Return the models of a version; none for a version without a decision, which a damaged config.pbtxt names."""
        try:
            return () if version is None else (await decided(self._repository, self._package.name, version)).models
        except StoreError:
            return ()

    def _configs(self) -> tuple[str, ...]:
        models = sorted(self._package.models, key=lambda model: model is self._package.entry)
        return tuple(f"{model.name}/{configs.FILE}" for model in models)


async def _config(repository: ModelRepository, name: str) -> Config | None:
    """Return the published configuration of a model, or None. Raises StoreError for one that cannot be read."""
    data = await repository.read(f"{name}/{configs.FILE}")
    try:
        return None if data is None else published_config.parsed(data)
    except ValueError as error:
        what = f"{repository.shown}/{name}/{configs.FILE} cannot be read"
        raise StoreError(what, [str(error)], "repair or remove it, or choose another URL") from None


async def decided(repository: ModelRepository, package: str, version: int) -> Manifest:
    """Return the decision about a version. Raises StoreError for one that cannot be read."""
    name = manifest_name(package, version)
    data = await repository.read(name, most=MOST_BYTES)
    try:
        return Manifest.of_bytes(data or b"", package, version)
    except ValueError as error:
        what = f"{repository.shown}/{name} cannot be read"
        raise StoreError(what, [str(error)], "restore it, or publish to another URL") from None


@dataclass(frozen=True)
class ListedVersion:
    """A version in a repository: its decision, or None while it is being published, and whether it is served."""

    package: str
    version: int
    decision: Manifest | None
    served: bool
    whole: bool
    claimed: float | None


async def versions(repository: ModelRepository) -> list[ListedVersion]:
    """Return all versions of a repository, by package and number."""
    listing = await repository.listing()
    rows: list[ListedVersion] = []
    serves: dict[str, int | None] = {}
    decisions = set(listing.decided())
    for package, version in sorted(decisions | set(listing.claimed())):
        if package not in serves:
            config = await _config(repository, package)
            serves[package] = published_config.current(package, {} if config is None else {package: config})
        decision = await decided(repository, package, version) if (package, version) in decisions else None
        claim = listing.entries.get(claim_name(package, version))
        whole = decision is not None and decision.complete and not listing.lacks(decision)
        age = None if claim is None else claim.modified
        rows.append(ListedVersion(package, version, decision, serves[package] == version, whole, age))
    return rows
