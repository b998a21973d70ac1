"""Published packages at a remote: no age removes them, collections beside publishers lose nothing, and they can go."""

import threading
import time

import pytest
import released
from collected import DAY, check, collect, files_of, make_older

from engine.errors import UserError
from engine.store.releases import Release
from engine.store.remote import objects, upkeep
from engine.store.remote.attempts import RetryingRemote
from engine.store.remote.objects import DeniedError
from engine.store.remote.releases import ReleaseTier

SIZE = 100_000


@pytest.fixture
def tier_of(machine):
    """Return the remote as `recipe publish` of a machine uses it, and the machine's store."""

    def of(remote, name, *, writes=False):
        store = machine(name, remote, writes=writes)
        return ReleaseTier(store, store.tier.settings, brief=False), store

    return of


@pytest.fixture
def publish(tier_of):
    """Keep the package `add` at a remote, as its publication does, and return its release: `publish(remote, 1)`."""

    def published(remote, add, *, name="ci", pushes=False):
        tier, store = tier_of(remote, name, writes=True)
        record = released.put(store.root, add, size=SIZE)
        release = Release(released.sha256_of(store.root, record), record.digest, "films")
        if pushes:
            tier.push(record)
            assert tier.wait() is None
        tier.keep(release, record)
        tier.close()
        store.leave()
        return release

    return published


@pytest.fixture
def taken(tier_of):
    """Return the files of a release that another machine has brought from the remote."""

    def of(remote, release, name):
        tier, store = tier_of(remote, name)
        found = tier.releases(release.sha256[:10])
        assert list(found) == [release]
        record = tier.take(release, found[release])
        tier.close()
        assert released.sha256_of(store.root, record) == release.sha256
        return record.files

    return of


def test_a_release_outlives_the_record_and_all_ages_until_it_is_let_go(publish, taken, tier_of, listing, trust):
    release = publish(listing, 1, pushes=True)
    other = publish(listing, 2, pushes=True)
    time.sleep(1.5)  # the clocks of servers have whole seconds
    result = collect(listing, older_than=0.0)
    assert (result.records, result.blobs, result.unreadable) == (2, 0, 0)
    verdict = check(listing, trust, deep=True)
    assert (verdict.records, verdict.unnamed, verdict.faults) == (2, 0, [])
    assert taken(listing, release, "laptop")
    tier, _ = tier_of(listing, "ci", writes=True)
    tier.forget(release)
    assert list(tier.releases()) == [other]
    tier.forget(release)
    assert collect(listing, older_than=0.0).blobs > 0
    assert list(tier.releases()) == [other]
    assert taken(listing, other, "desk")
    tier.close()


def test_who_only_reads_keeps_and_forgets_nothing(publish, tier_of, seaweed, remote_at, tmp_path):
    name = f"denied-{tmp_path.parent.name}-{tmp_path.name}"
    writable = remote_at(seaweed.url(name), seaweed.environ("writer"))
    release = publish(writable, 1)
    reader = remote_at(seaweed.url(name), seaweed.environ("reader"))
    with pytest.raises(DeniedError):
        publish(reader, 2, name="reader")
    tier, _ = tier_of(reader, "reader")
    with pytest.raises(DeniedError, match="cannot be removed"):
        tier.forget(release)
    assert list(tier.releases()) == [release]
    tier.close()


def test_who_publishes_again_writes_nothing_new_and_no_old_blob_is_relied_on(publish, taken, folder):
    release = publish(folder, 1, pushes=True)
    paths = [*files_of(folder, objects.RELEASES), *files_of(folder, objects.BLOBS)]
    before = [path.stat().st_mtime_ns for path in paths]
    publish(folder, 1)
    assert [path.stat().st_mtime_ns for path in paths] == before
    files_of(folder, objects.RELEASES)[0].unlink()
    make_older(files_of(folder, objects.BLOBS), DAY)
    publish(folder, 1, name="another")
    assert min(path.stat().st_mtime for path in files_of(folder, objects.BLOBS)) > time.time() - DAY / 2
    assert taken(folder, release, "laptop")


@pytest.mark.parametrize("is_late", [False, True], ids=["before the releases are listed", "after it"])
def test_a_package_that_is_published_during_a_collection_stays_whole(publish, taken, folder, monkeypatch, is_late):
    publish(folder, 1, pushes=True)
    files_of(folder, objects.RELEASES)[0].unlink()
    make_older([*files_of(folder, objects.RECORDS), *files_of(folder, objects.BLOBS)], 90 * DAY)
    real, published = RetryingRemote.listed, []

    async def listed(remote, name):
        entries = await real(remote, name)
        if name == objects.RELEASES:
            thread = threading.Thread(target=lambda: published.append(publish(folder, 1, name="another")))
            thread.start()
            thread.join()
            return entries if is_late else await real(remote, name)
        return entries

    monkeypatch.setattr(RetryingRemote, "listed", listed)
    assert collect(folder, older_than=30 * DAY, grace=upkeep.GRACE).records == 1
    monkeypatch.undo()
    assert taken(folder, published[0], "laptop")


def test_collections_beside_publishers_lose_no_release(publish, taken, folder, trust):
    count, failures, stop = 8, [], threading.Event()
    for add in range(count):
        publish(folder, add, pushes=True)
    for path in files_of(folder, objects.RELEASES):
        path.unlink()
    make_older([*files_of(folder, objects.RECORDS), *files_of(folder, objects.BLOBS)], 90 * DAY)
    made = []

    def collects():
        while not stop.is_set():
            try:
                collect(folder, older_than=DAY, grace=upkeep.GRACE)
            except UserError as error:
                failures.append(error)

    collector = threading.Thread(target=collects)
    collector.start()
    try:
        made = [publish(folder, add, name=f"again-{add}") for add in range(count)]
    finally:
        stop.set()
        collector.join()
    assert failures == []
    assert collect(folder, older_than=DAY, grace=upkeep.GRACE).unreadable == 0
    assert check(folder, trust, deep=True).faults == []
    assert len({*made}) == count
    for release in made:
        assert taken(folder, release, "laptop")


def test_a_release_that_cannot_be_read_keeps_all_blobs_and_is_named(publish, folder, trust):
    publish(folder, 1)
    [path] = files_of(folder, objects.RELEASES)
    path.write_bytes(b"{}")
    make_older(files_of(folder, objects.BLOBS), 90 * DAY)
    result = collect(folder, older_than=DAY)
    assert (result.unreadable, result.blobs) == (1, 0)
    [fault] = check(folder, trust).faults
    assert fault.name.startswith(objects.RELEASES)
