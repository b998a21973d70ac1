"""The one audit hook of a process: it hands what Python reports about reads to whoever listens at present."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import FrameType
from typing import Any

Handler = Callable[[tuple[Any, ...], FrameType], None]
"""Takes the arguments of an event, and the frame of the code that caused the event."""

_SILENT = (
    *("stat", "lstat", "access", "readlink"),
    *("cpu_count", "process_cpu_count", "sched_getaffinity", "getlogin", "getloadavg"),
)
"""Functions of the module `os` that answer without an audit event of Python."""
_replaced: dict[str, Callable[..., Any]] = {}
"""Functions of the module `os` that raise an event at present, as they were before."""
_handlers: Mapping[str, Handler] = {}
_without: tuple[str, ...] = ()


def hand_to(handlers: Mapping[str, Handler], *, without: tuple[str, ...] = ()) -> None:
    """Call these handlers, and no others, from now on; each stands under the name of its event, for example "open".

    What code in the files or folders `without` does is no event. Functions such as `os.stat`, for which Python raises
    no event, raise one ("os.stat") as long as there is a handler for it. An error of a handler is suppressed: it would
    be an error of the code that reads.
    """
    global _handlers, _without  # an audit hook cannot be removed, so it is told whom to call
    _install()
    _handlers, _without = handlers, without
    for name, function in _replaced.items():
        setattr(os, name, function)
    _replaced.clear()
    for name in _SILENT:
        if f"os.{name}" in handlers and hasattr(os, name):
            _replaced[name] = getattr(os, name)
            setattr(os, name, _with_event(f"os.{name}", _replaced[name]))


@cache
def _install() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    handler = _handlers.get(event)
    if handler is None:
        return
    frame = sys._getframe(1)  # noqa: SLF001
    if frame.f_code.co_filename.startswith(_without):
        return
    with contextlib.suppress(Exception):
        handler(arguments, frame)


def _with_event(event: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def audited(*arguments: Any, **named: Any) -> Any:
        _on_event(event, arguments or tuple(named.values()))
        return function(*arguments, **named)

    return audited
