"""Orders: jobs that travel to a node, and the answers that come back. Both are small: artifacts go by the remote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.builder.executors.executor import RunOrder
from engine.builder.job import Job, imported_step
from engine.builder.sources import Resolved
from engine.digest import Digest
from engine.errors import UsageError, UserError
from engine.key import Key, digest_of
from engine.store import output
from engine.store.record import Record
from engine.store.store import RemoteTier, Store


@dataclass(frozen=True)
class SentJob:
    """A job on its way to a node, which imports the step and learns the rest from it."""

    recipe: str
    name: str
    kind: str
    """The class of the step, written as `module:Class`."""
    options: Mapping[str, Any]
    """The fields of the step that a worker gets, in canonical form."""
    needs: Mapping[str, str]
    hermetic: bool

    @classmethod
    def of(cls, job: Job) -> SentJob:
        """Return what a node needs of a job."""
        return cls(job.recipe, job.name, job.traits.kind, job.traits.options, dict(job.needs), job.hermetic)

    @classmethod
    def decode(cls, fields: Mapping[str, Any]) -> SentJob:
        """Return the job of an order in JSON. Raises ValueError for other fields, or for fields of other types."""
        if {name: type(value) for name, value in fields.items()} != _TYPES:
            raise ValueError(f"these are not the fields of a job: {sorted(fields)}")
        return cls(**fields)

    def job(self) -> Job:
        """Return the job, with the step of this machine."""
        step = imported_step(self.kind, self.options, self.name)
        return Job(self.recipe, self.name, step, self.needs, hermetic=self.hermetic)


_TYPES = {"recipe": str, "name": str, "kind": str, "options": dict, "needs": dict, "hermetic": bool}
"""The types of the fields of a `SentJob` in JSON."""


@dataclass(frozen=True)
class SentSource:
    """A source of a job: a name at a hub, or a file or folder of the builder that was pushed as an artifact."""

    row: str
    """The value of the source in the job's key."""
    hub: str = ""
    """What the step gets: `hf:REPO@COMMIT`; "" for a file or folder."""
    key: Key = field(default_factory=dict)
    """The key of the record under which the file or folder was pushed."""
    name: str = ""
    """The name of the file or folder, as the builder has it."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The rows of the image files among samples, by their names."""


class Renewal(StrEnum):
    """What a node does once more although its own store has the result of a job."""

    NOTHING = "nothing"
    """The node only checks that the remote has all of the result, and pushes what is missing there."""
    PUSH = "push"
    """The node writes all of the result to the remote again: the builder could not use what is there."""
    RUN = "run"
    """The node runs the job, and writes the result over the one at the remote: for `--force`."""


@dataclass(frozen=True)
class JobOrder:
    """A job for a node, its key, and the keys of the records that it reads, by parameter."""

    job: SentJob
    key: Key
    inputs: Mapping[str, Key]
    sources: Mapping[str, SentSource]
    renewal: Renewal = Renewal.NOTHING

    def encode(self) -> bytes:
        """Return the order as JSON."""
        sources = {name: vars(source) for name, source in self.sources.items()}
        return json.dumps({**vars(self), "job": vars(self.job), "sources": sources}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> JobOrder:
        """Return the order in JSON. Raises ValueError, TypeError or KeyError for other bytes."""
        fields = json.loads(raw)
        sources = {name: SentSource(**source) for name, source in fields.pop("sources").items()}
        renewal = Renewal(fields.pop("renewal"))
        return cls(SentJob.decode(fields.pop("job")), **fields, sources=sources, renewal=renewal)


@dataclass(frozen=True)
class NodeAnswer:
    """How a job ended on a node.

    `error` has the fields of the error of a job that failed, and is empty for a job whose record is at the remote.
    `differs` has the rows of the key that the node does not confirm: the job did not run.
    """

    seconds: float = 0.0
    peak_bytes: int = 0
    anonymous_bytes: int = 0
    error: Mapping[str, Any] = field(default_factory=dict)
    differs: Sequence[tuple[str, str | None, str | None]] = ()
    lacks: Sequence[str] = ()
    """The names of the inputs and sources that the node could not bring; `error` says why."""
    log: str = ""
    """The log of a job that failed, without secrets."""
    is_pushed_again: bool = False
    """Whether the node had the result, and pushed again what the remote lacked of it."""
    envelope: str = ""
    """The signed envelope of the record, if it is small: the builder then need not ask the remote for it."""

    def encode(self) -> bytes:
        """Return the answer as JSON."""
        return json.dumps(vars(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> NodeAnswer:
        """Return the answer in JSON. Raises ValueError or TypeError for other bytes."""
        return cls(**json.loads(raw))


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
        self._pushed: set[Digest] = set()
        self._missed: set[Digest] = set()
        """The keys of what a node could not bring, and this machine pushes again: each once."""
        self._sources: dict[Digest, SentSource] = {}

    def send_inputs(self, order: RunOrder) -> None:
        """Push the inputs of a job that did not come from the remote, or that a node missed there. Raises UserError."""
        new = [record for record in order.inputs.values() if record.digest not in self._pushed]
        self._push([record for record in new if not record.origin or record.digest in self._missed])
        self._pushed |= {record.digest for record in new}

    def miss(self, sent: JobOrder, names: Iterable[str]) -> None:
        """Push again, with the next order, the inputs and sources that a node could not bring and this machine can."""
        for name in names:
            source = sent.sources.get(name)
            digest = digest_of(sent.inputs[name] if source is None else source.key)
            record = self._store.read(digest)
            is_here = source is not None or (record is not None and self._store.bring(record))
            if is_here and digest not in self._missed:
                self._missed.add(digest)
                self._tier.doubted.add(digest)
                self._pushed.discard(digest)
                self._sources = {place: each for place, each in self._sources.items() if each != source}

    def sources(self, order: RunOrder) -> Mapping[str, SentSource]:
        """Push the files and folders that a job reads, and return how a node finds each. Raises UserError."""
        sent = {}
        for name, source in order.job.traits.sources.items():
            resolved = order.lookup.source(source)
            if isinstance(resolved.location, str):
                sent[name] = SentSource(resolved.row, hub=resolved.location)
            else:
                sent[name] = self._sent(resolved, resolved.location)
        return sent

    def _sent(self, resolved: Resolved, location: Path) -> SentSource:
        key: Key = {"code": _SOURCE, "name": location.name, **resolved.rows("content")}
        place = digest_of(key)
        if place not in self._sources:
            record = self._store.find(key)
            if record is None or (record.digest in self._missed and self._store.is_on_remote(record)):
                record = self._filed(key, location, resolved.parts)
            self._push([record])
            self._sources[place] = SentSource(resolved.row, key=key, name=location.name, parts=resolved.parts)
        return self._sources[place]

    def _filed(self, key: Key, location: Path, parts: Collection[str]) -> Record:
        """Add a file or folder to the store as an artifact under the key of a source; of images, `parts`."""
        with self._store.presence.workplace() as folder:
            out = folder / "out"
            out.mkdir()
            inside = location.name if location.is_dir() else ""
            for part in parts:
                (out / inside / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(location.parent / inside / part, out / inside / part)
            if location.is_file():
                shutil.copyfile(location, out / location.name)
            elif not parts:
                shutil.copytree(location, out / location.name)
            return filed(self._store, key, out)

    def _push(self, records: Sequence[Record]) -> None:
        for record in records:
            self._tier.push_new(record, earlier=())
        error = self._tier.wait() if records else None
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
