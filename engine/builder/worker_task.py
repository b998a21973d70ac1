"""The task that a worker gets, and the outcome that the builder gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.errors import UserError
    from engine.store.output import Files


@dataclass(frozen=True)
class WorkerTask:
    """The work for one run of a job: names, values and paths, no code and no data."""

    step: str
    """The class of the step, written as `module:Class`."""
    name: str
    options: Mapping[str, Any]
    inputs: Mapping[str, str]
    """The value of each parameter of the step's `run`: an absolute path, or a hub location such as `hf:REPO@COMMIT`."""
    out: str
    log: str
    key: str = ""
    """The digest of the job's key, for steps that write it into their output."""
    gpu: str = ""
    """The name, in its driver, of the GPU that the job must run on; "" for a job that runs on any machine."""
    id: str = ""
    """The name of this run, which no other run of a job has; the answer of the worker carries the name, too."""
    flushes: bool = True
    """Whether the output is flushed to the disk before the answer."""


@dataclass(frozen=True)
class Outcome:
    """The end of one run of a job: a report or an error, with measurements and output files."""

    report: Mapping[str, object] | None
    error: UserError | None
    seconds: float
    peak_bytes: int
    files: Files = field(default_factory=dict)
    """The output files: from the relative path to the size in bytes and the digest of the content."""
    binding: str = ""
    """The digest of step, key, output and report, as the zygote computed it from the task that it got."""
    anonymous_bytes: int = 0
    """The largest memory of the worker without the pages of mapped files, from samples; 0 for a run without samples."""
