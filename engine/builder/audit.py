"""The one audit hook of a process: it hands what Python reports about reads to whoever listens at present."""

# This file and `kit/onnx/foreign_functions.py` alone assign to modules of others (tests/test_foreign_modules.py).

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import Any

Handler = Callable[[tuple[Any, ...], FrameType], None]
"""Takes the arguments of an event, and the frame of the code that caused the event."""

_SILENT: Mapping[str, tuple[str, ...]] = {
    "os": (
        *("stat", "lstat", "access", "readlink", "statvfs"),
        *("cpu_count", "process_cpu_count", "sched_getaffinity", "getlogin", "getloadavg"),
        *("getuid", "geteuid", "getresuid", "getgid", "getegid", "getresgid", "getgroups", "getgrouplist", "umask"),
    ),
    "resource": ("getrlimit",),
    "_posixsubprocess": ("fork_exec",),  # with which `multiprocessing` starts processes
    "importlib": ("import_module",),  # Python's own event "import" tells of the first import of a module alone
    "builtins": ("__import__",),
}
"""Functions by their module that answer without an audit event of Python."""
_ABILITIES = (os.supports_dir_fd, os.supports_follow_symlinks, os.supports_effective_ids)
"""Sets of the functions of the module `os` with an ability, which other modules ask."""
_replaced: dict[tuple[str, str], Callable[..., Any]] = {}
"""Functions that raise an event at present, as they were before, by their module and name."""
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
    for (module, name), function in _replaced.items():
        setattr(sys.modules[module], name, function)
    _replaced.clear()
    for module, names in _SILENT.items():
        for name in names:
            if f"{module}.{name}" in handlers:
                _replace(module, name)


def _replace(module: str, name: str) -> None:
    """Let a function raise an event, if this system has the function."""
    function = getattr(importlib.import_module(module), name, None)
    if function is None:
        return
    _replaced[module, name] = function
    event = f"{module}.{name}"
    audited = _with_event_of_import(event, function) if name == "__import__" else _with_event(event, function)
    setattr(sys.modules[module], name, audited)
    for each in _ABILITIES:
        if function in each:
            each.add(audited)


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
        if named.get("dir_fd") is None:  # else the path is relative to another folder
            _on_event(event, arguments or tuple(named.values()))
        return function(*arguments, **named)

    return audited


def _with_event_of_import(event: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of import statements with an event: the name, what imports it, the names in it, the level."""

    @functools.wraps(function)
    def audited(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002  the names of builtins.__import__
        locals: Mapping[str, Any] | None = None,  # noqa: A002  the names of builtins.__import__
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        _on_event(event, (name, globals, fromlist or (), level))
        return function(name, globals, locals, fromlist or (), level)

    return audited
