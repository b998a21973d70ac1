"""The events of a build, with those that come while the loop waits: for a lock of the store, or for the remote."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from engine.events import Event, Finished, Noticed
from engine.store import file_lock

if TYPE_CHECKING:
    from engine.store.store import Store


def announce(
    events: Iterable[Event], store: Store, on_event: Callable[[Event], None], whole: Callable[[Finished], Finished]
) -> Finished:
    """Hand all events on, each in the thread that waits, and return the last one.

    `whole` adds to the last event what the loop does not know.
    """
    if store.tier is not None:
        store.tier.watch(on_event)
    last: Finished | None = None
    with file_lock.announcing(lambda text: on_event(Noticed(text))):
        for event in events:
            last = whole(event) if isinstance(event, Finished) else None
            on_event(last or event)
    if last is None:
        raise AssertionError("a build has ended without its last event")
    return last
