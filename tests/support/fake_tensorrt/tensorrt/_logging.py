"""Loggers: TensorRT keeps the first one of a process and ignores all that come later, and so does this."""

from enum import IntEnum


class ILogger:
    Severity = IntEnum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE", start=0)
    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = Severity

    def __init__(self):
        pass

    def log(self, severity, msg):
        raise NotImplementedError


class Logger(ILogger):
    def __init__(self, min_severity=ILogger.WARNING):
        ILogger.__init__(self)

    def log(self, severity, msg):
        print(severity.name, msg)


_first = []


def register(logger):
    if not isinstance(logger, ILogger):
        raise TypeError("a logger is wanted")
    _first[:] = _first or [logger]


def complain(message):
    _first[0].log(ILogger.ERROR, message)
