"""Statements of a store, whether the files are those that were signed."""

from stores import put

from engine.store.remote import statement
from engine.store.remote.trust import Trust
from engine.store.store import Store

KEY = {"step": "x", "code": "c"}


def test_a_record_that_was_never_pushed_gets_a_signed_statement(tmp_path, pair, trust):
    store = Store(tmp_path / "cache")
    record = put(store, KEY, {"a": "A", "b/c": ""})
    opened = statement.envelope_of(store, record, pair)
    assert trust.signer_of(opened).name == "ci"
    assert statement.envelope_of(store, record, None) == opened, "it is kept"
    checked = statement.check_store(store, trust)
    assert (checked.statements, checked.files, checked.signers, checked.faults) == (1, 2, {"ci": 1}, ())


def test_an_own_statement_may_be_unsigned_and_is_signed_later(tmp_path, pair, trust):
    store = Store(tmp_path / "cache")
    record = put(store, KEY, {"a": "A"})
    assert statement.envelope_of(store, record, None).signatures == ()
    assert statement.check_store(store, Trust()).signers == {"": 1}
    assert statement.envelope_of(store, record, pair).signatures
    assert statement.check_store(store, trust).signers == {"ci": 1}


def test_a_file_with_other_bytes_and_a_missing_file_are_named(tmp_path, pair, trust):
    store = Store(tmp_path / "cache")
    record = put(store, KEY, {"a": "A", "b": "B"})
    statement.envelope_of(store, record, pair)
    folder = store.artifact_path(record.artifact)
    (folder / "a").chmod(0o600)
    (folder / "a").write_text("X")
    (folder / "b").unlink()
    faults = [why for _, why in statement.check_store(store, trust).faults]
    assert faults == ["a has another SHA-256 than its provenance says", "b is missing"]


def test_the_statement_of_another_record_is_no_provenance(tmp_path, pair, trust):
    store = Store(tmp_path / "cache")
    one, two = put(store, KEY, {"a": "A"}), put(store, {**KEY, "options.n": "2"}, {"a": "B"})
    store.keep_envelopes({two.digest: statement.envelope_of(store, one, pair).encode()})
    assert [why for _, why in statement.check_store(store, trust).faults] == ["the statement is that of another record"]
