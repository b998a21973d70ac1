"""Ledgers: the newest line of a key counts, a torn one does not, and collected records are forgotten."""

import pytest

from engine.digest import of_bytes
from engine.store.ledger import Ledger
from engine.store.store import Store

KEYS = [of_bytes(str(number).encode()) for number in range(4)]
REMOTE = "s3://bucket/a"


def envelope(text):
    return b'{"payload": "%s"}\n' % text.encode()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


def every(store):
    return [store.envelopes.read(key) for key in KEYS]


def test_many_envelopes_lie_in_one_file_and_are_read_one_by_one(store):
    store.keep_envelopes({})
    store.keep_envelopes({key: envelope(key) for key in KEYS[:2]})
    store.keep_envelopes({key: envelope(key) for key in KEYS[2:]})
    assert len(list(store.layout.envelopes.iterdir())) == 1
    for each in (store, Store(store.root)):
        assert every(each) == [envelope(key) for key in KEYS]
        assert each.envelopes.read(of_bytes(b"another")) is None
    store.keep_envelopes({KEYS[0]: b'{\n  "a": 1\n}'})
    assert store.envelopes.read(KEYS[0]) == b'{   "a": 1 }\n', "the newest counts, and is one line"


def test_envelopes_of_earlier_versions_are_read_until_they_are_collected(store):
    folder = store.layout.envelopes
    folder.mkdir()
    (folder / f"{1:020}-7.batch").write_bytes(b"".join(b"%s %s" % (key.encode(), envelope("1")) for key in KEYS[:3]))
    (folder / f"{2:020}-7.batch").write_bytes(b"%s %s" % (KEYS[1].encode(), envelope("2")))
    (folder / f"{KEYS[3]}.json").write_bytes(envelope("alone"))
    assert every(store) == [envelope("1"), envelope("2"), envelope("1"), envelope("alone")]
    store.keep_envelopes({KEYS[2]: envelope("new")})
    assert every(store) == [envelope("1"), envelope("2"), envelope("new"), envelope("alone")]
    store.envelopes.forget_all_but({KEYS[0], KEYS[1]})
    assert every(store) == [envelope("1"), envelope("2"), None, None]
    store.envelopes.forget_all_but(set())
    assert list(folder.iterdir()) == []


def test_what_another_process_adds_is_found(store):
    for number, key in enumerate(KEYS):
        assert store.envelopes.read(key) is None
        Store(store.root).keep_envelopes({key: envelope("a")})
        assert every(store) == [envelope("a")] * (number + 1) + [None] * (3 - number)


def test_the_lines_of_other_keys_go_also_under_the_eyes_of_a_reader(store):
    store.keep_envelopes({key: envelope(f"{key} and more") for key in KEYS})
    reader = Ledger(store.layout.envelopes, store.write)
    assert reader.read(KEYS[0]) == envelope(f"{KEYS[0]} and more")
    store.envelopes.forget_all_but({KEYS[1]})
    for each in (store.envelopes, reader):
        assert [each.read(key) for key in KEYS] == [None, envelope(f"{KEYS[1]} and more"), None, None]


@pytest.mark.parametrize("cut", [1, 2, 5, 20, len(envelope("")) + 33])
def test_a_line_that_a_power_cut_tore_is_no_envelope_and_costs_no_other(store, cut):
    store.keep_envelopes({key: envelope(key) for key in KEYS[:2]})
    [path] = store.layout.envelopes.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    assert every(store) == [envelope(KEYS[0]), None, None, None]
    store.keep_envelopes({KEYS[2]: envelope("new")})
    for each in (store, Store(store.root)):
        assert every(each) == [envelope(KEYS[0]), None, envelope("new"), None]


def test_each_remote_has_its_own_list(store):
    store.keep_pushed({KEYS[0]: envelope("a")}, REMOTE)
    for each in (store, Store(store.root)):
        assert each.has_pushed(KEYS[0], REMOTE)
        assert not each.has_pushed(KEYS[1], REMOTE)
        assert not each.has_pushed(KEYS[0], "s3://bucket/b")


def test_a_torn_line_is_a_record_that_was_not_pushed(store):
    store.keep_pushed({KEYS[0]: envelope("a")}, REMOTE)
    [path] = (store.root / "pushed").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    store.keep_pushed({KEYS[1]: envelope("b")}, REMOTE)
    assert store.has_pushed(KEYS[1], REMOTE)
    assert not store.has_pushed(KEYS[0], REMOTE)


def test_collected_records_are_not_pushed_any_more(store):
    store.keep_pushed({key: envelope(key) for key in KEYS}, REMOTE)
    store.pushed.forget_all_but({KEYS[1]})
    assert [store.has_pushed(key, REMOTE) for key in KEYS] == [False, True, False, False]
