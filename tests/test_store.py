"""The store's guarantees."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.disk import write_atomically
from engine.errors import StoreError
from engine.key import digest_of
from engine.stat_cache import StatCache
from engine.store import Store

KEY = {"step": "x", "options.a": "1"}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


def put(store, key, files):
    with store.staging() as folder:
        out = folder / "out"
        out.mkdir()
        for name, text in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return store.commit(key, out, report={"n": 1}, seconds=0.5, peak_bytes=7, machine={"os": "Linux"})


def test_what_was_committed_is_found_again(store):
    record = put(store, KEY, {"a.txt": "A", "sub/b.txt": "B"})
    again = Store(store.root).find(KEY)
    assert again == record
    assert (store.artifact_path(record.artifact) / "sub" / "b.txt").read_text() == "B"
    assert again.size == 2


def test_another_key_is_not_found(store):
    put(store, KEY, {"a.txt": "A"})
    assert store.find(KEY | {"options.a": "2"}) is None


def test_equal_content_is_one_artifact_under_two_keys(store):
    one = put(store, KEY, {"a.txt": "A"})
    two = put(store, KEY | {"options.a": "2"}, {"a.txt": "A"})
    assert one.artifact == two.artifact
    assert len(list((store.root / "artifacts").iterdir())) == 1


def test_artifacts_that_share_a_file_store_it_once(store):
    one = put(store, KEY, {"weights": "W" * 1000, "a": "1"})
    two = put(store, KEY | {"options.a": "2"}, {"weights": "W" * 1000, "b": "2"})
    files = [store.artifact_path(record.artifact) / "weights" for record in (one, two)]
    assert files[0].stat().st_ino == files[1].stat().st_ino


def test_files_in_the_store_are_read_only(store):
    record = put(store, KEY, {"a.txt": "A"})
    mode = (store.artifact_path(record.artifact) / "a.txt").stat().st_mode
    assert mode & 0o222 == 0


def test_a_record_whose_artifact_lost_a_file_is_no_hit_and_is_healed_by_the_next_commit(store):
    record = put(store, KEY, {"a.txt": "A", "b.txt": "B"})
    (store.artifact_path(record.artifact) / "a.txt").unlink()
    assert store.find(KEY) is None
    put(store, KEY, {"a.txt": "A", "b.txt": "B"})
    assert store.find(KEY).artifact == record.artifact
    assert (store.artifact_path(record.artifact) / "a.txt").read_text() == "A"


def test_a_damaged_file_of_the_same_size_is_no_hit_and_is_healed_by_the_next_commit(store):
    record = put(store, KEY, {"a.txt": "A"})
    other = put(store, KEY | {"options.a": "2"}, {"a.txt": "A", "b.txt": "B"})
    file = store.artifact_path(record.artifact) / "a.txt"
    file.chmod(0o644)
    file.write_text("X")
    assert store.find(KEY) is None
    assert store.find(other.key) is None  # it shares the file
    put(store, KEY, {"a.txt": "A"})
    assert file.read_text() == "A"
    assert store.find(KEY) is not None
    assert store.find(other.key) is None


def test_a_store_that_was_copied_without_its_times_is_whole(store):
    record = put(store, KEY, {"a.txt": "A"})
    file = store.artifact_path(record.artifact) / "a.txt"
    os.utime(file)
    assert store.find(KEY) == record
    assert file.stat().st_mtime == 1


@pytest.mark.parametrize("target", ["/etc/hostname", "/etc"], ids=["file", "folder"])
def test_a_link_in_an_output_is_refused(store, target):
    with store.staging() as folder:
        (folder / "out").mkdir()
        (folder / "out" / "link").symlink_to(target)
        with pytest.raises(StoreError, match="no plain file"):
            store.commit(KEY, folder / "out", report={}, seconds=0, peak_bytes=0, machine={})


def test_an_output_that_is_no_folder_is_refused(store):
    with store.staging() as folder:
        (folder / "out").write_text("")
        with pytest.raises(StoreError, match="left no folder"):
            store.commit(KEY, folder / "out", report={}, seconds=0, peak_bytes=0, machine={})


def test_what_a_killed_builder_left_is_swept_and_what_a_living_one_makes_is_not(store):
    left = store.root / "staging" / "left"
    left.mkdir()
    os.utime(left, (1, 1))
    with store.staging() as mine, Store(store.root).staging():
        os.utime(mine, (1, 1))
        assert not left.exists()
        with Store(store.root).staging():
            assert mine.exists()


def test_a_damaged_pool_file_is_not_shared_further(store):
    record = put(store, KEY, {"a.txt": "A"})
    [pooled] = (store.root / "files").glob("*/*")
    pooled.chmod(0o644)
    pooled.write_text("X")
    assert pooled.samefile(store.artifact_path(record.artifact) / "a.txt")
    put(store, KEY | {"options.a": "2"}, {"a.txt": "A", "b.txt": "B"})
    fresh = store.find(KEY | {"options.a": "2"})
    assert (store.artifact_path(fresh.artifact) / "a.txt").read_text() == "A"


@pytest.mark.parametrize("cut", [0, 1, 10, 50])
def test_a_torn_record_is_no_record(store, cut):
    put(store, KEY, {"a.txt": "A"})
    path = store.record_path(digest_of(KEY))
    path.write_bytes(path.read_bytes()[:cut])
    assert store.find(KEY) is None
    assert list(store.records()) == []


def test_a_record_moved_under_another_key_is_no_hit(store):
    put(store, KEY, {"a.txt": "A"})
    other = KEY | {"options.a": "2"}
    os.rename(store.record_path(digest_of(KEY)), store.record_path(digest_of(other)))
    assert store.find(other) is None


def test_what_is_left_in_staging_is_removed(store):
    with store.staging() as folder:
        (folder / "half").write_text("half")
    assert list((store.root / "staging").iterdir()) == []


def test_a_lock_is_held_by_one_and_freed_by_release(store):
    lock = store.try_lock(digest_of(KEY))
    assert store.try_lock(digest_of(KEY)) is None
    lock.release()
    again = store.try_lock(digest_of(KEY))
    assert again is not None
    again.release()


def test_a_dead_holder_frees_its_lock(store):
    code = (
        "import sys, os; from pathlib import Path; from engine.store import Store;"
        "Store(Path(sys.argv[1])).try_lock(sys.argv[2]); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(store.root), digest_of(KEY)], check=False)
    lock = store.try_lock(digest_of(KEY))
    assert lock is not None
    lock.release()


def test_a_store_of_another_format_is_left_alone(tmp_path):
    (tmp_path / "format").write_text("99\n")
    with pytest.raises(StoreError, match="has format 99"):
        Store(tmp_path)


def test_a_place_that_is_a_file_is_one_clear_error(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "cache")


def test_a_full_disk_is_one_clear_error_and_leaves_the_old_content(store, monkeypatch):
    put(store, KEY, {"a.txt": "A"})

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        put(store, KEY | {"options.a": "2"}, {"a.txt": "B"})
    assert "free some disk space" in caught.value.hint
    monkeypatch.undo()
    assert store.find(KEY) is not None
    assert store.find(KEY | {"options.a": "2"}) is None
    assert list((store.root / "staging").iterdir()) == []


def test_an_atomic_write_leaves_no_temporary_file(tmp_path):
    write_atomically(tmp_path / "a", b"1")
    write_atomically(tmp_path / "a", b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"2"


def test_a_record_holds_what_people_ask_for(store):
    put(store, KEY, {"a.txt": "A"})
    raw = json.loads(store.record_path(digest_of(KEY)).read_text())
    assert raw["key"] == KEY
    assert raw["files"]["a.txt"][0] == 1
    assert {"seconds", "peak_bytes", "report", "machine", "artifact", "made_at"} <= raw.keys()


def test_an_old_unchanged_file_is_not_read_again(store, tmp_path, monkeypatch):
    file = tmp_path / "big"
    file.write_text("content")
    os.utime(file, ns=(1, 1))
    monkeypatch.setattr("engine.stat_cache.GRANULARITY_NS", -(10**9))
    cache = StatCache(store)
    first = cache.digest(file)
    cache.save()
    monkeypatch.setattr("engine.digest.of_file", lambda _: pytest.fail("read again"))
    assert StatCache(store).digest(file) == first


def test_a_young_file_is_read_again(store, tmp_path):
    file = tmp_path / "young"
    file.write_text("one")
    first = StatCache(store)
    before = first.digest(file)
    first.save()
    stat = file.stat()
    file.write_text("two")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert StatCache(store).digest(Path(file)) != before
