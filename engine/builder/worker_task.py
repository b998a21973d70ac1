"""The task that a worker gets, and the outcome that the builder gets."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.errors import FieldError, StepError, UserError
from engine.store.sealed import sealed, unsealed

if TYPE_CHECKING:
    from engine.store.output import Files

_HEAD = struct.Struct("<QQ")
"""The number of bytes of the answer, and the process id of a copy of the worker that returned from the step, too."""
_ROOM = 16 << 20
"""The greatest number of bytes of an answer. Only memory that an answer fills is really used."""


@dataclass(frozen=True)
class WorkerAnswer:
    """What a worker answers: a report or an error of the step, with the task's id and the worker's process id."""

    task: str
    pid: int
    report: Mapping[str, object] | None
    error: UserError | None

    def encode(self) -> bytes:
        """Return the answer as sealed JSON."""
        error = None if self.error is None else self.error.fields()
        return sealed({"task": self.task, "pid": self.pid, "report": self.report, "error": error})

    @classmethod
    def decode(cls, text: str) -> WorkerAnswer:
        """Return the answer in sealed JSON. Raises ValueError for bytes that are no whole answer."""
        fields = unsealed(text.encode())
        error = fields.pop("error")
        try:
            return cls(**fields, error=error and error_of(error))
        except (TypeError, KeyError) as wrong:
            raise ValueError(str(wrong)) from None


class MissingPackageError(StepError):
    """A step cannot import a package. The builder adds the command that installs the package."""

    def __init__(self, module: str, why: str) -> None:
        super().__init__(f"{module!r} cannot be imported", [why])
        self.module = module

    def fields(self) -> dict[str, object]:
        """Return the error as a dictionary for JSON."""
        return {**super().fields(), "module": self.module}


def error_of(fields: Mapping[str, Any]) -> StepError:
    """Return the error of a step from its fields in JSON."""
    if "module" in fields:
        return MissingPackageError(fields["module"], *fields["facts"])
    if "path" in fields:
        return FieldError(fields["what"], fields["path"], fields["facts"], fields["hint"])
    return StepError(fields["what"], fields["facts"], fields["hint"])


class AnswerMemory:
    """Memory that a zygote shares with its workers.

    No file descriptor leads to the memory, so a step that writes to descriptors, or closes them, reaches no answer.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _ROOM)

    def clear(self) -> None:
        """Forget the answer of the worker before."""
        self._memory[: _HEAD.size] = _HEAD.pack(0, 0)

    def write(self, answer: WorkerAnswer) -> None:
        """Write an answer. An answer that is too long becomes the error of the step."""
        raw = answer.encode()
        if len(raw) > _ROOM - _HEAD.size:
            size = f"the report has {len(raw)} bytes, {_ROOM - _HEAD.size} are allowed"
            long = StepError(
                "the report of a step is too long", [size], "steps write long results as files under `out`"
            )
            raw = WorkerAnswer(answer.task, answer.pid, None, long).encode()
        self._memory[_HEAD.size : _HEAD.size + len(raw)] = raw
        self._memory[:8] = struct.pack("<Q", len(raw))

    def note_copy(self, pid: int) -> None:
        """Note that a copy of the worker, which the step has forked, returned from the step."""
        self._memory[8:16] = struct.pack("<Q", pid)

    @property
    def copy(self) -> int:
        """The process id of a copy of the worker that returned from the step; 0 without one."""
        return int(_HEAD.unpack(self._memory[: _HEAD.size])[1])

    def read(self) -> str | None:
        """Return the text of the answer; None where the worker wrote none."""
        length = int(_HEAD.unpack(self._memory[: _HEAD.size])[0])
        if not 0 < length <= _ROOM - _HEAD.size:
            return None
        return bytes(self._memory[_HEAD.size : _HEAD.size + length]).decode("utf-8", "replace")


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
