"""Collection: records that the limits remove, and records that always stay."""

import os
import time

import pytest
from stores import put

from engine import snapshot
from engine.errors import StoreError
from engine.store import collection, verification
from engine.store.collection import CollectionLimits, collect
from engine.store.store import Store
from engine.system import watched

DAY = 86400.0
KEYS = [{"step": "x", "options.n": str(number)} for number in range(4)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """Four records of 1,000 bytes, of which they share 500; made 4, 3, 2 and 1 days ago."""
    store = Store(tmp_path / "cache")
    now = time.time()
    for number, key in enumerate(KEYS):
        monkeypatch.setattr(time, "time", lambda age=4 - number: now - age * DAY)
        put(store, key, {"shared": "S" * 500, "own": str(number) * 500})
    monkeypatch.undo()
    store.leave()
    return store


def left(store):
    return [number for number, key in enumerate(KEYS) if Store(store.root).find(key) is not None]


def test_without_limits_only_leftovers_go(store):
    Store(store.root).record_path(Store(store.root).find(KEYS[3]).digest).unlink()
    (store.root / "quarantine").mkdir()
    (store.root / "quarantine" / "old").write_text("")
    (store.root / "logs" / "nobody.log").write_text("")
    result = collect(store, CollectionLimits(), dry_run=False)
    assert result.records == []
    assert result.leftovers == 4  # the artifact, its own file, the log, what was put aside
    assert left(store) == [0, 1, 2]
    assert len(list((store.root / "artifacts").iterdir())) == 3
    assert len(list((store.root / "files").glob("*/*"))) == 4
    assert verification.verify(store.root, parallel=1).damages == []


def test_by_age(store):
    result = collect(store, CollectionLimits(older_than_seconds=2.5 * DAY), dry_run=False)
    assert [record.key for record, _ in result.records] == KEYS[:2]
    assert (result.bytes, result.left_bytes) == (1000, 1500)
    assert left(store) == [2, 3]


def test_by_size_the_longest_unused_first(store):
    result = collect(store, CollectionLimits(max_bytes=1600), dry_run=False)
    assert len(result.records) == 2
    assert left(store) == [2, 3]


def test_what_is_shared_frees_nothing(store):
    assert len(collect(store, CollectionLimits(max_bytes=2499), dry_run=True).records) == 1
    assert len(collect(store, CollectionLimits(max_bytes=499), dry_run=True).records) == 4


def test_by_reach(store):
    kept = {Store(store.root).find(KEYS[0]).digest}
    collect(store, CollectionLimits(reach=kept), dry_run=False)
    assert left(store) == [0]


def test_what_is_reached_stays_whatever_its_age(store):
    kept = {Store(store.root).find(KEYS[0]).digest}
    collect(store, CollectionLimits(reach=kept, older_than_seconds=1), dry_run=False)
    assert left(store) == [0]


def test_a_dry_run_removes_nothing_and_says_the_same(store):
    limits = CollectionLimits(older_than_seconds=2.5 * DAY)
    dry = collect(store, limits, dry_run=True)
    assert left(store) == [0, 1, 2, 3]
    real = collect(store, limits, dry_run=False)
    assert [record for record, _ in dry.records] == [record for record, _ in real.records]
    assert (dry.bytes, dry.left_bytes) == (real.bytes, real.left_bytes)


def test_what_a_running_build_uses_stays(store):
    builder = Store(store.root)
    record = builder.read(builder.find(KEYS[0]).digest)
    builder.use(record.digest)
    result = collect(Store(store.root), CollectionLimits(reach=()), dry_run=False)
    assert result.in_use == 1
    assert left(store) == [0]
    builder.leave()
    collect(Store(store.root), CollectionLimits(reach=()), dry_run=False)
    assert left(store) == []


def test_what_a_build_comes_to_use_in_the_last_moment_is_put_back(store, monkeypatch):
    builder = Store(store.root)
    digest = builder.find(KEYS[0]).digest
    assert builder.presence.folder.is_dir()
    calls = []
    real = collection.presence.used

    def used(staging):
        if calls:  # between the first question and the second the builder names a record
            builder.use(digest)
        calls.append(1)
        return real(staging)

    monkeypatch.setattr(collection.presence, "used", used)
    result = collect(Store(store.root), CollectionLimits(reach=()), dry_run=False)
    assert result.in_use == 1
    assert left(store) == [0]
    assert verification.verify(store.root, parallel=1).damages == []
    builder.leave()


def test_what_an_up_to_date_build_answers_from_counts_as_used(store):
    record = Store(store.root).find(KEYS[0])
    place = store.root / "snapshots" / "x"
    outputs = [str(store.record_path(record.digest))]
    content = snapshot.stated(
        ["r.yaml"], rows={name: watched.row_of(name) for name in outputs}, absent=[], notes=[],
        way={}, roots={}, mounts={}, variables=[], environment={},
    )  # fmt: skip
    store.write(place, snapshot.sealed(str(place), content))
    collect(store, CollectionLimits(older_than_seconds=1.5 * DAY), dry_run=False)
    assert left(store) == [0, 3]
    os.utime(place, (1, 1))
    collect(store, CollectionLimits(older_than_seconds=1.5 * DAY), dry_run=False)
    assert left(store) == [3]
    assert not place.exists()


def test_a_clock_that_was_ahead_makes_nothing_eternal(store, monkeypatch):
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1000 * DAY)
    put(store, KEYS[0], {"own": "from the future"})
    store.leave()
    monkeypatch.undo()
    records = {record.digest: record for record in store.records()}
    assert max(collection.last_uses(store, records).values()) <= time.time()


def test_without_working_locks_nothing_is_collected(store, monkeypatch):
    monkeypatch.setattr("engine.store.file_lock.work", lambda _: False)
    with pytest.raises(StoreError, match="no working locks"):
        collect(Store(store.root), CollectionLimits(reach=()), dry_run=False)
    assert left(store) == [0, 1, 2, 3]
