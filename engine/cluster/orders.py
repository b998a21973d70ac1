"""Orders: jobs that travel to a node, and the answers that come back. Both are small: artifacts go by the remote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.builder import stored
from engine.key import Key

if TYPE_CHECKING:
    from engine.builder.job import Job


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
    """A job for a node: the job's fields, its key, and the keys of the records that it reads, by parameter."""

    job: Mapping[str, Any]
    key: Key
    inputs: Mapping[str, Key]
    sources: Mapping[str, SentSource]

    def encode(self) -> bytes:
        """Return the order as JSON."""
        sources = {name: vars(source) for name, source in self.sources.items()}
        return json.dumps({**vars(self), "sources": sources}, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, raw: bytes) -> JobOrder:
        """Return the order in JSON. Raises ValueError, TypeError or KeyError for other bytes."""
        fields = json.loads(raw)
        sources = {name: SentSource(**source) for name, source in fields.pop("sources").items()}
        return cls(**fields, sources=sources)


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


def fields_of(job: Job) -> dict[str, Any]:
    """Return a job as plain data, from which a node makes it again."""
    return {"recipe": job.recipe, **stored.plain(job)}


def job_of(fields: Mapping[str, Any]) -> Job:
    """Return the job of plain data. Its step is imported when it is needed."""
    return stored.job_of(fields["recipe"], fields)
