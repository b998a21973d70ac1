"""Log: one logger per process for TensorRT's messages, with the errors and warnings since the last call of `begin`."""

# TensorRT uses the first logger of a process until the process ends, and ignores all later loggers. A worker may build
# several times, so one logger is used for all builds.

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt


class Log(Protocol):
    """TensorRT's error messages and warnings since the last call of `begin`."""

    problems: list[str]
    """TensorRT's error messages."""
    warnings: list[str]


def begin() -> tuple[tensorrt.ILogger, Log]:
    """Clear the logger of the active TensorRT module, and return it twice: typed for TensorRT, and typed as a `Log`."""
    logger = _logger(trt.__name__)
    logger.problems.clear()
    logger.warnings.clear()
    return logger, logger


def forget() -> None:
    """Drop all loggers, so that `begin` makes new ones: for tests that load another module of the same name."""
    _logger.cache_clear()


@cache
def _logger(_module: str) -> Any:
    """Return a logger that prints and stores warnings and errors."""
    severity = trt.ILogger.Severity
    severe = (severity.INTERNAL_ERROR, severity.ERROR)

    class Kept(trt.ILogger):
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.problems: list[str] = []
            self.warnings: list[str] = []

        def log(self, severity: tensorrt.ILogger.Severity, msg: str) -> None:
            if severity in severe:
                self.problems.append(msg)
            elif severity == trt.ILogger.Severity.WARNING:
                self.warnings.append(msg)
            else:
                return
            print(msg, flush=True)

    return Kept()
