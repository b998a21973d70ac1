"""Ctrl-C while a program shows events: what is being shown is not cut, and the work hears of it right after."""

# A first interruption (SIGINT, SIGTERM or SIGHUP) waits while it is deferred. A second one is raised at once.

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Generator, Iterator
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """What this process knows about interruptions."""

    def __init__(self) -> None:
        self.is_deferring = False
        """Whether a first interruption is deferred."""
        self.is_pending = False
        """Whether an interruption waits."""
        self.count = 0
        self.replaced: list[signal.Signals] | None = None
        """The signals that are handled here; None before `install`."""

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        self.count += 1
        if self.is_deferring and self.count == 1:
            self.is_pending = True
        else:
            raise KeyboardInterrupt

    def let(self) -> None:
        """Defer nothing any more. Raises KeyboardInterrupt for an interruption that waits."""
        self.is_deferring = False
        if self.is_pending:
            self.is_pending = False
            raise KeyboardInterrupt


_STATE = _Interrupts()


def install() -> bool:
    """Handle interruptions from now on; return whether this call changed anything.

    Only in the main thread, and only signals that would raise KeyboardInterrupt.
    """
    if _STATE.replaced is not None or threading.current_thread() is not threading.main_thread():
        return False
    _STATE.replaced = [each for each in _SIGNALS if signal.getsignal(each) is signal.default_int_handler]
    for each in _STATE.replaced:
        signal.signal(each, _STATE.on_signal)
    return True


def restore() -> None:
    """Let interruptions be raised at once again, as before `install`."""
    for each in _STATE.replaced or ():
        signal.signal(each, signal.default_int_handler)
    _STATE.replaced, _STATE.count, _STATE.is_deferring, _STATE.is_pending = None, 0, False, False


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Defer an interruption inside the block; at its end it is raised."""
    if _STATE.is_deferring:
        yield
        return
    _STATE.is_deferring = True
    try:
        yield
    finally:
        _STATE.let()


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise an interruption that waits, and further ones inside the block, where they are deferred otherwise."""
    before = _STATE.is_deferring
    _STATE.let()
    try:
        yield
    finally:
        _STATE.is_deferring = before


def between(events: Generator[T, None, None], last: type[T]) -> Iterator[T]:
    """Yield events. An interruption while the reader handles one is raised here, before the next one is made.

    After an event of the type `last`, an interruption is deferred until the end of the program, or until `restore`.
    """
    # Signals are handled at calls and jumps: none comes between the end of `next` and `is_deferring = True`.
    with contextlib.closing(events):
        for event in events:
            _STATE.is_deferring = True
            yield event
            if not isinstance(event, last):
                _STATE.let()
