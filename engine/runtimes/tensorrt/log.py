"""What TensorRT says while it works: one logger for a process, and what went wrong since a build began."""

# TensorRT keeps the first logger that it is given for as long as the process lives and ignores all later ones, and a
# worker builds more than once.

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from engine.runtimes.tensorrt.api import trt

if TYPE_CHECKING:
    import tensorrt


class Log(Protocol):
    """What is remembered of TensorRT's words."""

    problems: list[str]
    """Errors since the build began, as TensorRT words them."""
    warnings: list[str]


def begin() -> tuple[tensorrt.ILogger, Log]:
    """Return this process's logger of the module that is meant, twice: as TensorRT and as we see it; it is empty."""
    logger = _logger(trt.__name__)
    logger.problems.clear()
    logger.warnings.clear()
    return logger, logger


def forget() -> None:
    """Begin with new loggers: for those who load another module of the same name."""
    _logger.cache_clear()


@cache
def _logger(_module: str) -> Any:
    """Return a logger that prints warnings and errors and keeps them."""
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
