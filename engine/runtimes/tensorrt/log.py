"""Log: one logger per process for TensorRT's messages, and a monitor that prints the progress of its builder."""

# TensorRT uses the first logger of a process until the process ends, and ignores all later loggers. A worker may build
# several times, so one logger is used for all builds.

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt

_PAUSE = 0.5
"""The least number of seconds between two printed lines of progress: more lines would only fill the log."""


class Log(Protocol):
    """TensorRT's error messages since the last call of `begin`."""

    problems: list[str]


def begin() -> tuple[tensorrt.ILogger, Log]:
    """Clear the logger of the active TensorRT module, and return it twice: typed for TensorRT, and typed as a `Log`."""
    logger = _logger(trt.__name__)
    logger.problems.clear()
    return logger, logger


@cache
def _logger(_module: str) -> Any:
    """Return a logger that prints warnings and errors, and stores the errors."""
    severe = (trt.ILogger.Severity.INTERNAL_ERROR, trt.ILogger.Severity.ERROR)

    class Kept(trt.ILogger):
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.problems: list[str] = []

        def log(self, severity: tensorrt.ILogger.Severity, msg: str) -> None:
            if severity in severe:
                self.problems.append(msg)
            if severity in (*severe, trt.ILogger.Severity.WARNING):
                print(msg, flush=True)

    return Kept()


@dataclass
class _Phase:
    parent: str | None
    steps: int
    done: int = 0


@dataclass
class Progress:
    """The current phases of TensorRT's builder, the outermost first, with the number of steps that each phase has done.

    Several threads may call the methods of Progress.
    """

    phases: dict[str, _Phase] = field(default_factory=dict)
    printed_at: float = field(default_factory=time.monotonic)
    furthest: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def start(self, name: str, parent: str | None, steps: int) -> None:
        """Enter a phase of TensorRT's builder; `steps` is the number of steps in the phase."""
        with self.lock:
            self.phases[name] = _Phase(parent, max(1, steps))
            self._say(name)

    def step(self, name: str, number: int) -> None:
        """Register that TensorRT's builder has done one step of a phase."""
        with self.lock:
            if name in self.phases:
                self.phases[name].done = max(self.phases[name].done, number + 1)
                self._say(name)

    def finish(self, name: str) -> None:
        """Leave a phase of TensorRT's builder, perhaps before all steps of the phase are done."""
        with self.lock:
            phase = self.phases.pop(name, None)
            if phase is not None and phase.parent is None:
                self.furthest = 1.0
                self._say(name)

    def share(self) -> float:
        """Return the share of the engine's build that is done, from 0 to 1.

        A step of TensorRT's builder that is not finished counts by the finished share of the phase inside the step. The
        returned share never falls, although the phases inside one step of TensorRT's builder come one after the other
        and each phase begins at 0.
        """
        outermost = next((name for name, phase in self.phases.items() if phase.parent is None), None)
        self.furthest = max(self.furthest, self._share(outermost))
        return self.furthest

    def _share(self, name: str | None) -> float:
        if name is None:
            return 0.0
        phase = self.phases[name]
        inner = [self._share(child) for child, other in self.phases.items() if other.parent == name]
        return min(1.0, (phase.done + max(inner, default=0.0)) / phase.steps)

    def _say(self, name: str) -> None:
        now = time.monotonic()
        if now - self.printed_at < _PAUSE:
            return
        self.printed_at = now
        print(f"{self.share():.0%}  {name[:1].lower()}{name[1:]}", flush=True)


def monitor(progress: Progress) -> tensorrt.IProgressMonitor:
    """Return a progress monitor for TensorRT's builder; the monitor passes each phase and step to `progress`.

    The caller must hold a reference to the returned progress monitor as long as the builder's config exists.
    """

    class Monitor(trt.IProgressMonitor):
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            progress.start(phase_name, parent_phase, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            progress.step(phase_name, step)
            return True

        def phase_finish(self, phase_name: str) -> None:
            progress.finish(phase_name)

    return Monitor()
