"""A remote that has lost objects: who has pushed them pushes them again when somebody asks, and nobody asks for all."""

import random

import lost_objects
import pytest
from lost_objects import DAMAGES
from stores import pushed, put

from engine.store.remote import keys
from engine.store.remote.objects import BLOBS, MissingError, RefusedError, UntrustedError
from engine.store.remote.trust import Trust, TrustedKey

KEY = {"step": "x", "code": "c"}
FILES = {"weights": random.Random(0).randbytes(100_000).hex(), "small": "s"}
"""The blob is large enough to be asked for before it is sent."""
SEEN_BY_A_PUSH = [name for name in DAMAGES if name != "the blobs have other bytes"]
"""A push compares sizes. Other bytes of the same size are found by who reads them, and by `cache verify --deep`."""


def damage(remote, name):
    assert lost_objects.change(remote.url, remote.writer, **DAMAGES[name]) > 0


def can_be_brought(store, key=KEY):
    record = store.find(key)
    return record is not None and store.bring(record)


@pytest.mark.parametrize("name", SEEN_BY_A_PUSH)
@pytest.mark.parametrize("is_new", [True, False], ids=["another process", "the same process"])
def test_a_push_that_is_remembered_is_checked_with_its_blobs(machine, listing, name, is_new):
    store = machine("a", listing, writes=True)
    record = pushed(store, KEY, FILES, job="export")
    damage(listing, name)
    store = machine("a", listing, writes=True) if is_new else store
    before = store.tier.counts.bytes_out
    store.tier.push(record)
    assert store.tier.wait() is None
    assert store.tier.counts.again == ["export"]
    assert (store.tier.counts.bytes_out > before) == (
        name not in {"the records are gone", "the records have other bytes"}
    )
    assert "pushed again, because it was missing there or could not be used: 1 export" in store.tier.counts.repairs
    assert can_be_brought(machine("b", listing))
    store.tier.push(record)
    assert store.tier.wait() is None
    assert store.tier.counts.again == ["export"], "what is whole is not pushed again"


def test_a_build_asks_for_nothing_that_it_has_pushed(machine, folder):
    store = machine("a", folder, writes=True)
    record = pushed(store, KEY, FILES)
    damage(folder, "all is gone")
    store.tier.push_new(record, earlier=())
    assert store.tier.wait() is None
    assert lost_objects.names(folder.url) == []


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_doubted_is_written_whole_whatever_is_there(machine, listing, name):
    store = machine("a", listing, writes=True)
    record = pushed(store, KEY, FILES)
    damage(listing, name)
    store.tier.doubted.add(record.digest)
    store.tier.push_new(record, earlier=())
    assert store.tier.wait() is None
    assert not store.tier.doubted
    assert can_be_brought(machine("b", listing))
    store.tier.push_new(record, earlier=())
    assert store.tier.wait() is None
    assert store.tier.counts.again == ["x"], "once"


@pytest.mark.parametrize("name", DAMAGES)
def test_another_machine_that_misses_an_object_makes_it_and_pushes_it_again(machine, folder, name):
    pushed(machine("a", folder, writes=True), KEY, FILES)
    damage(folder, name)
    other = machine("b", folder, writes=True)
    assert not can_be_brought(other)
    record = put(other, KEY, FILES)  # as the job makes it
    other.tier.push_new(record, earlier=())
    assert other.tier.wait() is None
    assert can_be_brought(machine("c", folder))


def test_the_reason_is_that_of_the_key_and_not_the_first_of_all(machine, folder, pair):
    record = pushed(machine("a", folder, writes=True), KEY, FILES)
    other = machine("b", folder)
    absent = {**KEY, "code": "absent"}
    assert other.find(absent) is None
    damage(folder, "the blobs are cut")
    assert not can_be_brought(other)
    lack = other.tier.lack(record.digest)
    assert isinstance(lack, RefusedError)
    assert "the blob" in lack.what
    missing = other.tier.lack(put(machine("n", folder), absent, {"f": ""}).digest)
    assert isinstance(missing, MissingError)
    assert missing.what.startswith(f"{other.tier.shown}/v1/records/")
    for each in (lack, missing):
        assert each.hint == f"`recipe cache verify --remote {other.tier.shown} --deep` names what is lost there"
    revoking = machine("c", folder, trusts=Trust((TrustedKey(pair.public, "ci", revoked=True), *strangers())))
    assert revoking.find(KEY) is None
    refused = revoking.tier.lack(record.digest)
    assert isinstance(refused, UntrustedError)
    assert refused.what == "revoked key: the record is signed by ci, which is revoked"
    assert "trust the key" in refused.hint
    assert "no key is trusted" in machine("d", folder, trusts=Trust()).tier.lack(record.digest).what


def strangers():
    return (TrustedKey(keys.PrivateKey(keys.Ed25519PrivateKey.generate()).public),)


def test_the_damages_leave_what_they_do_not_name(machine, folder):
    pushed(machine("a", folder, writes=True), KEY, FILES)
    assert len(lost_objects.names(folder.url, folder=BLOBS)) == 1
    damage(folder, "the records are gone")
    assert len(lost_objects.names(folder.url, folder=BLOBS)) == 1
