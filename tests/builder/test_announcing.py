"""What comes between the events of the loop reaches whoever reads the events."""

from dataclasses import replace

import pytest

from engine.builder.announcing import announce
from engine.errors import Exit
from engine.events import Finished, Moved, Noticed
from engine.store import file_lock
from engine.store.store import Store

MOVED = Moved("in", "there", ("export",), 1, 2)
LAST = Finished("built", 1.0, Exit.OK, {})


class FakeTier:
    """A fake remote that reports at once."""

    def watch(self, on_event):
        on_event(MOVED)


def loop(*events):
    for tell in file_lock._listeners:
        tell("waiting for a lock")
    yield from events


def whole(last):
    return replace(last, seconds=2.0)


def test_what_moves_and_waits_for_locks_are_events_and_the_last_one_is_whole(tmp_path):
    store, events = Store(tmp_path / "cache"), []
    store.tier = FakeTier()
    last = announce(loop(Noticed("one"), LAST), store, events.append, whole)
    assert events == [MOVED, Noticed("waiting for a lock"), Noticed("one"), whole(LAST)]
    assert last == whole(LAST)


def test_a_build_without_a_last_event_is_a_fault_of_this_program(tmp_path):
    with pytest.raises(AssertionError, match="without its last event"):
        announce(loop(Noticed("one")), Store(tmp_path / "cache"), [].append, whole)
