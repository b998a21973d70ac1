"""What a builder pushes for the nodes: the inputs of jobs that only this machine has, and files that recipes name."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.builder.executors.executor import RunOrder
from engine.cluster.orders import SentSource
from engine.errors import UsageError, UserError
from engine.key import Key, digest_of
from engine.store import output
from engine.store.record import Record
from engine.store.remote_tier import RemoteTier
from engine.store.store import Store

_SOURCE = "recipe.cluster/source"
"""The row `code` of the key under which a file or folder of the builder is pushed."""


def tier_of(store: Store) -> RemoteTier:
    """Return the remote of a build on a cluster.

    Raises UsageError for a store without a remote, and for one that pushes nothing there.
    """
    if store.tier is None:
        raise UsageError(
            "a build on a cluster needs a remote, by which its artifacts travel",
            hint="set RECIPE_REMOTE, here and on every node: see docs/cluster.md",
        )
    if not store.tier.settings.pushes:
        raise UsageError(
            "a build on a cluster pushes what its nodes need, and this machine may not push",
            hint="`recipe cache keygen` makes a signing key; RECIPE_PUSH must not be 0",
        )
    return store.tier


class Sender:
    """Pushes what nodes need, each thing once."""

    def __init__(self, store: Store, tier: RemoteTier) -> None:
        self._store = store
        self._tier = tier
        self._pushed: set[str] = set()
        self._sources: dict[str, SentSource] = {}

    def send_inputs(self, order: RunOrder) -> None:
        """Push the inputs of a job that did not come from the remote. Raises UserError."""
        new = [record for record in order.inputs.values() if str(record.digest) not in self._pushed]
        own = [record for record in new if not record.origin]
        self._push(own)
        self._pushed |= {str(record.digest) for record in new}

    def sources(self, order: RunOrder) -> Mapping[str, SentSource]:
        """Push the files and folders that a job reads, and return how a node finds each. Raises UserError."""
        sent = {}
        for name, source in order.job.traits.sources.items():
            resolved = order.lookup.source(source)
            if isinstance(resolved.location, str):
                sent[name] = SentSource(resolved.row, hub=resolved.location)
            else:
                sent[name] = self._sent(resolved.row, resolved.location)
        return sent

    def _sent(self, row: str, location: Path) -> SentSource:
        place = f"{row} {location.name}"
        if place not in self._sources:
            key: Key = {"code": _SOURCE, "content": row, "name": location.name}
            record = self._store.find(key) or self._filed(key, location)
            self._push([record])
            self._sources[place] = SentSource(row, key=key, name=location.name)
        return self._sources[place]

    def _filed(self, key: Key, location: Path) -> Record:
        """Add a file or folder to the store as an artifact, under the key of a source."""
        with self._store.presence.workplace() as folder:
            out = folder / "out"
            out.mkdir()
            if location.is_dir():
                shutil.copytree(location, out / location.name)
            else:
                shutil.copyfile(location, out / location.name)
            return filed(self._store, key, out)

    def _push(self, records: Sequence[Record]) -> None:
        error = pushed(self._tier, records)
        if error is not None:
            names = ", ".join(sorted({record.job for record in records}))
            raise UserError(f"the nodes cannot get what this machine has: {names}", [str(error)])


def filed(store: Store, key: Key, out: Path) -> Record:
    """Add a folder of a workplace to the store as an artifact, under the key of a source. Raises StoreError."""
    files = output.take(out)
    return store.commit(
        key,
        out,
        files,
        report={},
        seconds=0.0,
        peak_bytes=0,
        machine={},
        job="source",
        step=_SOURCE,
        bound=output.binding(step=_SOURCE, key=digest_of(key), tree=output.tree(files), report={}),
    )


def pushed(tier: RemoteTier, records: Sequence[Record]) -> UserError | None:
    """Push records, and wait until the remote has them; return the first error, if any."""
    for record in records:
        tier.push_new(record, earlier=())
    return tier.wait() if records else None
