"""What comes between the events of the loop reaches whoever reads the events."""

from engine.builder.announcing import announcing
from engine.events import Moved, Noticed
from engine.store import file_lock
from engine.store.store import Store

MOVED = Moved("in", "there", ("export",), 1, 2)


class FakeTier:
    """A fake remote that reports at once."""

    def watch(self, on_event):
        on_event(MOVED)


def test_what_moves_and_waits_for_locks_are_events(tmp_path):
    store, events = Store(tmp_path / "cache"), []
    store.tier = FakeTier()
    with announcing(store, events.append):
        for tell in file_lock._listeners:
            tell("waiting for a lock")
    assert events == [MOVED, Noticed("waiting for a lock")]
