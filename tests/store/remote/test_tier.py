"""One machine pushes, another has the same records and brings the bytes that it needs."""

import dataclasses
import time

import pytest
import stores
from remote_servers import Faulty
from stores import put

from engine.store.remote import blobs
from engine.store.remote.statement import admitted
from engine.store.remote.trust import Trust, TrustedKey
from engine.store.store import Store

KEY = {"step": "x", "code": "c", "options.a": "1", "inputs.model": "m"}
FILES = {"model.onnx": "weights " * 5000, "sub/empty": "", "sub/small": "s"}


def push(store, key=KEY, files=FILES, **fields):
    return stores.pushed(store, key, files, **fields)


def test_another_machine_finds_the_record_and_brings_the_same_bytes(machine, remote):
    record = push(machine("a", remote, writes=True))
    other = machine("b", remote)
    taken = other.find(KEY)
    assert taken is not None
    assert other.is_on_remote(taken)
    assert not list(other.layout.artifacts.iterdir())
    assert other.bring(taken)
    assert not other.is_on_remote(taken)
    assert taken.artifact == record.artifact
    assert other.artifacts.is_whole(taken)
    assert {**dataclasses.asdict(taken), "origin": {}} == {**dataclasses.asdict(record), "log": "", "origin": {}}
    assert taken.origin["remote"] == other.tier.shown


def test_a_record_of_very_many_small_files_arrives(machine, remote):
    files = {f"part{number}/weights": str(number) for number in range(100)}
    push(machine("a", remote, writes=True), files=files)
    other = machine("b", remote)
    taken = other.find(KEY)
    assert other.bring(taken)
    assert len(taken.files) == len(files)
    assert other.artifacts.is_whole(taken)


def test_a_second_push_writes_nothing_that_is_there(machine, folder):
    store = machine("a", folder, writes=True)
    record = push(store)
    again = machine("a", folder, writes=True)
    again.tier.push(record)
    assert again.tier.wait() is None
    assert again.tier.counts.pushed == 0
    assert again.tier.counts.bytes_out == 0
    before = store.tier.counts.bytes_out
    push(store, {**KEY, "options.a": "2"}, {**FILES, "other": "x"})
    assert store.tier.counts.bytes_out == before > 0, "equal content travels once"


def test_a_file_of_several_blobs_arrives_whole_and_is_gone_on_with(machine, remote, trust, monkeypatch):
    monkeypatch.setattr(blobs, "SIZE", 50_000)
    large = "".join(str(number) for number in range(60_000))
    record = push(machine("a", remote, writes=True), files={"weights": large})
    other = machine("b", remote)
    taken = other.find(KEY)
    [sha256] = [file.sha256 for file in admitted(other.envelopes.read(record.digest), KEY, trust).files.values()]
    other.layout.incoming.mkdir()
    (other.layout.incoming / f"{sha256}.part").write_bytes(large.encode()[:100_000])  # two blobs of a killed attempt
    assert other.bring(taken)
    assert (other.artifact_path(taken.artifact) / "weights").read_text() == large
    assert 0 < other.tier.counts.bytes_in <= len(large) - 100_000


def test_files_that_the_store_has_are_not_brought(machine, folder):
    push(machine("a", folder, writes=True))
    other = machine("b", folder)
    put(other, {"step": "own"}, {"mine": FILES["model.onnx"]})
    assert other.bring(other.find(KEY))
    assert other.tier.counts.bytes_in < len(FILES["model.onnx"])


def test_what_is_not_there_is_asked_for_once_in_a_while(machine, folder):
    other = machine("b", folder)
    assert other.find(KEY) is None
    push(machine("a", folder, writes=True))
    assert other.find(KEY) is None, "the builder looks twice within a moment; the second look costs no request"
    other.tier.look_again()
    assert other.find(KEY) is not None


def test_a_store_without_the_remote_does_not_use_a_record_whose_bytes_it_lacks(machine, folder):
    push(machine("a", folder, writes=True))
    record = machine("b", folder).find(KEY)
    alone = Store(machine("b", folder).root)
    assert alone.find(KEY) == record
    assert not alone.bring(record)
    assert alone.find(KEY) is None


def test_without_trusted_keys_nothing_is_asked_and_trust_none_uses_unsigned_records(machine, folder):
    store = machine("a", folder, writes=True, signer=None, trusts=Trust(everything=True))
    push(store)
    assert machine("b", folder).find(KEY) is None
    other = machine("b", folder, trusts=Trust())
    assert other.find(KEY) is None
    assert "no key is trusted" in other.tier.summary()
    assert machine("c", folder, trusts=Trust(everything=True)).find(KEY) is not None


def test_the_records_of_a_key_that_is_revoked_later_are_not_used_any_more(machine, folder, pair):
    push(machine("a", folder, writes=True))
    other = machine("b", folder)
    assert other.bring(other.find(KEY))
    later = machine("b", folder, trusts=Trust((TrustedKey(pair.public, revoked=True),)))
    assert later.find(KEY) is None


def test_a_damaged_artifact_is_mended_from_the_remote(machine, folder):
    store = machine("a", folder, writes=True)
    record = push(store)
    for path in (store.artifact_path(record.artifact) / "model.onnx", *store.layout.files.rglob("*")):
        if path.is_file():
            path.chmod(0o600)
            path.write_text("damaged")
    taken = machine("a", folder).find(KEY)
    assert taken is not None
    assert machine("a", folder).bring(taken)


def test_a_record_from_a_machine_with_a_gpu_is_listed_for_those_without(machine, remote):
    store = machine("a", remote, writes=True)
    first = put(store, {"step": "graph", "code": "g"}, {"graph": "g"})
    key = {**KEY, "inputs.model": str(first.artifact), "facts.device.name": "T4", "tools.tensorrt": "10.11.0.33"}
    record = put(store, key, {"engine": "e"})
    store.tier.push(first)
    store.tier.push(record, earlier=[first])
    assert store.tier.wait() is None
    other = machine("b", remote)
    other.tier.gather({row: value for row, value in key.items() if not row.startswith(("facts.", "tools."))})
    assert {each.digest for each in other.records()} == {first.digest, record.digest}


def test_a_value_that_may_be_a_secret_is_not_pushed(machine, folder):
    store = machine("a", folder, writes=True)
    record = put(store, {**KEY, "env.HF_TOKEN": "hf_abc"}, FILES)
    store.tier.push(record)
    error = store.tier.wait()
    assert error is not None
    assert "env.HF_TOKEN" in str(error)
    assert "hf_abc" not in str(error)
    assert machine("b", folder).find(record.key) is None


def test_a_log_stays_on_its_machine(machine, folder):
    store = machine("a", folder, writes=True)
    record = push(store, log=b"a password that a step printed")
    assert b"password" not in store.envelopes.read(record.digest)
    other = machine("b", folder)
    assert other.find(KEY).log == ""


@pytest.mark.parametrize("mode", ["status 500 Internal Server Error", "status 507 Insufficient Storage", "silent"])
def test_a_remote_in_trouble_costs_seconds_and_one_line(machine, nginx, mode, remote_at):
    faulty = Faulty(nginx.port)
    faulty.mode = mode
    store = machine("a", remote_at(nginx.url("x", port=faulty.port)), writes=True, brief=True)
    start = time.monotonic()
    assert store.find(KEY) is None
    record = put(store, KEY, FILES)
    store.tier.push(record)
    error = store.tier.wait()
    assert error is not None
    assert time.monotonic() - start < 10
    assert "\n" not in store.tier.summary()
    assert "secret" not in store.tier.summary()
    faulty.stop()
