"""Published packages stay in a store, whatever the limits of a collection are, until they are let go."""

import threading

import pytest
import released

from engine.store import collection, releases
from engine.store.collection import CollectionLimits, collect
from engine.store.releases import Release
from engine.store.store import Store

ALL_GO = (CollectionLimits(reach=()), CollectionLimits(max_bytes=0), CollectionLimits(older_than_seconds=0.0))


@pytest.fixture
def root(tmp_path):
    """A store with the packages 1 and 2, of which the first one was published."""
    root = tmp_path / "cache"
    records = [released.put(root, add) for add in (1, 2)]
    store = Store(root)
    assert releases.keep(store, Release(released.sha256_of(root, records[0]), records[0].digest, "films"))
    store.leave()
    return root


def adds(root):
    return [add for add in (1, 2, 3) if Store(root).find(released.key_of(add)) is not None]


@pytest.mark.parametrize("limits", ALL_GO, ids=["reach", "size", "age"])
def test_every_limit_leaves_published_packages(root, limits):
    would = collect(Store(root), limits, dry_run=True)
    result = collect(Store(root), limits, dry_run=False)
    assert [record.key for record, _ in result.records] == [record.key for record, _ in would.records]
    assert [record.key for record, _ in result.records] == [released.key_of(2)]
    assert adds(root) == [1]
    [release] = releases.every(Store(root))
    store = Store(root)
    releases.forget(store, release)
    store.leave()
    collect(Store(root), limits, dry_run=False)
    assert adds(root) == []
    assert not list((root / "artifacts").iterdir())


def test_the_size_is_reached_by_what_is_not_published(root):
    released.put(root, 3)
    whole = collect(Store(root), CollectionLimits(), dry_run=True).left_bytes
    collect(Store(root), CollectionLimits(max_bytes=whole - 1), dry_run=False)
    assert adds(root) == [1, 3]


def test_what_is_published_after_the_choice_is_put_back(root, monkeypatch):
    record = Store(root).find(released.key_of(2))
    real = collection._choice

    def choice(*words):
        chosen = real(*words)
        publisher = Store(root)
        publisher.use(record.digest)
        assert releases.keep(publisher, Release("2" * 64, record.digest, "films"))
        publisher.leave()  # it has ended before the records are removed
        return chosen

    monkeypatch.setattr(collection, "_choice", choice)
    assert collect(Store(root), CollectionLimits(reach=()), dry_run=False).in_use == 1
    assert adds(root) == [1, 2]


def test_collections_beside_publishers_leave_each_package_whole(root):
    stop = threading.Event()

    def collects():
        while not stop.is_set():
            collect(Store(root), CollectionLimits(reach=()), dry_run=False)

    collector = threading.Thread(target=collects)
    collector.start()
    kept = []
    try:
        for add in range(10, 30):
            record = released.put(root, add)
            store = Store(root)
            store.use(record.digest)
            if store.read(record.digest) is not None:
                assert releases.keep(store, Release(f"{add:064}", record.digest, "films"))
                kept.append(add)
            store.leave()
    finally:
        stop.set()
        collector.join()
    assert kept, "the collections were always faster"
    assert [add for add in kept if Store(root).find(released.key_of(add)) is None] == []
