"""Collection: records that the limits remove, and records that always stay."""

import os
import time

import pytest
from stores import put

from engine import snapshot
from engine.errors import StoreError
from engine.key import digest_of
from engine.store import collection, verification
from engine.store.collection import CollectionLimits, collect
from engine.store.store import Store
from engine.system import watched

DAY = 86400.0
KEYS = [{"step": "x", "options.n": str(number)} for number in range(4)]
KEY_OF_FIRST = digest_of(KEYS[0])


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


@pytest.mark.parametrize(
    ("limits", "gone"),
    [({"older_than_seconds": 2.5 * DAY}, [0, 1]), ({"max_bytes": 1600}, [0, 1]), ({"reach": {KEY_OF_FIRST}}, [1, 2, 3]),
     ({"reach": {KEY_OF_FIRST}, "older_than_seconds": 1}, [1, 2, 3])],
    ids=["age", "size, the longest unused first", "reach", "what is reached stays whatever its age"],
)  # fmt: skip
def test_a_collection_removes_what_the_limits_name_and_a_dry_run_says_the_same(store, limits, gone):
    dry = collect(store, CollectionLimits(**limits), dry_run=True)
    assert left(store) == [0, 1, 2, 3]
    real = collect(store, CollectionLimits(**limits), dry_run=False)
    assert [record for record, _ in dry.records] == [record for record, _ in real.records]
    assert (dry.bytes, dry.left_bytes) == (real.bytes, real.left_bytes)
    assert [KEYS.index(record.key) for record, _ in real.records] == gone
    assert (real.bytes, real.left_bytes) == (500 * len(gone), 500 + 500 * (4 - len(gone)))
    assert left(store) == [number for number in range(4) if number not in gone]


def test_what_is_shared_frees_nothing(store):
    assert len(collect(store, CollectionLimits(max_bytes=2499), dry_run=True).records) == 1
    assert len(collect(store, CollectionLimits(max_bytes=499), dry_run=True).records) == 4


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
    monkeypatch.setattr("engine.store.file_lock.are_supported", lambda _: False)
    with pytest.raises(StoreError, match="no working locks"):
        collect(Store(store.root), CollectionLimits(reach=()), dry_run=False)
    assert left(store) == [0, 1, 2, 3]
