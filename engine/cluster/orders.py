"""Orders: jobs that travel to a node, and the answers that come back. Both are small: artifacts go by the remote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.builder.job import Job, imported_step
from engine.key import Key


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


@dataclass(frozen=True)
class JobOrder:
    """A job for a node, its key, and the keys of the records that it reads, by parameter."""

    job: SentJob
    key: Key
    inputs: Mapping[str, Key]
    sources: Mapping[str, SentSource]

    def encode(self) -> bytes:
        """Return the order as JSON."""
        sources = {name: vars(source) for name, source in self.sources.items()}
        return json.dumps({**vars(self), "job": vars(self.job), "sources": sources}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> JobOrder:
        """Return the order in JSON. Raises ValueError, TypeError or KeyError for other bytes."""
        fields = json.loads(raw)
        sources = {name: SentSource(**source) for name, source in fields.pop("sources").items()}
        return cls(SentJob.decode(fields.pop("job")), **fields, sources=sources)


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
    lacks: str = ""
    """The parameter of an input that the node could not bring."""
    log: str = ""
    """The log of a job that failed, without secrets; or why an input could not be brought."""

    envelope: str = ""
    """The signed envelope of the record, if it is small: the builder then need not ask the remote for it."""

    def encode(self) -> bytes:
        """Return the answer as JSON."""
        return json.dumps(vars(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> NodeAnswer:
        """Return the answer in JSON. Raises ValueError or TypeError for other bytes."""
        return cls(**json.loads(raw))
