"""Events that come while the build loop waits: for a lock of the store, or for the remote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.events import Event, Noticed
from engine.store import file_lock

if TYPE_CHECKING:
    from engine.store.store import Store


@contextmanager
def announcing(store: Store, on_event: Callable[[Event], None]) -> Iterator[None]:
    """Hand such events on inside the block, each in the thread that waits."""
    if store.tier is not None:
        store.tier.watch(on_event)
    with file_lock.announcing(lambda text: on_event(Noticed(text))):
        yield
