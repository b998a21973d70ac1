"""Envelopes: one file each, or one for the many small records of a push; the newest counts, and a torn one does not."""

import pytest

from engine.digest import of_bytes
from engine.store.envelopes import Envelopes
from engine.store.store import Store

KEYS = [of_bytes(str(number).encode()) for number in range(4)]


def envelope(text):
    return b'{"payload": "%s"}\n' % text.encode()


@pytest.fixture
def store(tmp_path):
    with_presence = Store(tmp_path / "cache")
    yield with_presence
    with_presence.leave()


def names(store):
    return sorted(path.name for path in store.layout.envelopes.iterdir())


def test_the_envelopes_of_a_batch_lie_in_one_file_and_are_read_one_by_one(store):
    store.envelopes.keep_all({key: envelope(key) for key in KEYS})
    assert len(names(store)) == 1
    for each in (store, Store(store.root)):
        assert [each.envelopes.read(key) for key in KEYS] == [envelope(key) for key in KEYS]
        assert each.envelopes.read(of_bytes(b"another")) is None


def test_a_batch_of_one_is_a_file_of_its_own_and_one_of_none_is_no_file(store):
    store.envelopes.keep_all({KEYS[0]: envelope("a")})
    store.envelopes.keep_all({})
    assert names(store) == [f"{KEYS[0]}.json"]


def test_the_newest_envelope_of_a_record_counts(store):
    for text in ("first", "second"):
        store.envelopes.keep_all({key: envelope(text) for key in KEYS})
    assert Store(store.root).envelopes.read(KEYS[0]) == envelope("second")
    store.envelopes.keep(KEYS[0], envelope("third"))
    assert store.envelopes.read(KEYS[0]) == envelope("third")
    store.envelopes.keep_all({key: envelope("fourth") for key in KEYS})
    assert Store(store.root).envelopes.read(KEYS[0]) == envelope("fourth")
    assert store.envelopes.read(KEYS[0]) == envelope("fourth")


def test_what_another_process_adds_is_found(store):
    assert store.envelopes.read(KEYS[0]) is None
    Envelopes(store.layout.envelopes, store.write).keep_all({key: envelope("a") for key in KEYS})
    assert store.envelopes.read(KEYS[0]) == envelope("a")


def test_the_lines_of_other_keys_go_also_under_the_eyes_of_a_reader(store):
    store.envelopes.keep_all({key: envelope(f"{key} and more") for key in KEYS})
    store.envelopes.keep_all({key: envelope(key) for key in KEYS[2:]})
    reader = Envelopes(store.layout.envelopes, store.write)
    assert reader.read(KEYS[0]) == envelope(f"{KEYS[0]} and more")
    store.envelopes.forget_all_but({KEYS[1]})
    assert len(names(store)) == 1
    for each in (store.envelopes, reader):
        assert [each.read(key) for key in KEYS] == [None, envelope(f"{KEYS[1]} and more"), None, None]
    store.envelopes.forget_all_but(set())
    assert names(store) == []


def test_a_line_that_a_power_cut_tore_is_no_envelope(store):
    store.envelopes.keep_all({key: envelope(key) for key in KEYS})
    [path] = store.layout.envelopes.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    every = [store.envelopes.read(key) for key in KEYS]
    assert every == [*(envelope(key) for key in KEYS[:3]), None]
