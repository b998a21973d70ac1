"""The store's guarantees."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from stores import put

from engine import digest
from engine.errors import StepError, StoreError
from engine.key import digest_of
from engine.store import output
from engine.store.sealed import unsealed
from engine.store.store import Store

KEY = {"step": "x", "options.a": "1"}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


def test_what_was_committed_is_found_again(store):
    record = put(store, KEY, {"a.txt": "A", "sub/b.txt": "B"})
    again = Store(store.root).find(KEY)
    assert again == record
    assert (store.artifact_path(record.artifact) / "sub" / "b.txt").read_text() == "B"
    assert again.size == 2


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


def damage(path, text="X"):
    """Edit a stored file without changing its size and modification time."""
    status = path.stat()
    path.chmod(0o644)
    path.write_text(text * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_damaged_file_of_the_same_size_and_time_is_no_hit_and_is_healed_by_the_next_commit(store):
    record = put(store, KEY, {"a.txt": "A"})
    other = put(store, KEY | {"options.a": "2"}, {"a.txt": "A", "b.txt": "B"})
    file = store.artifact_path(record.artifact) / "a.txt"
    damage(file)
    assert store.find(KEY) is None
    assert [path.stem for path in (store.root / "quarantine").iterdir()] == [record.artifact]
    put(store, KEY, {"a.txt": "A"})
    assert file.read_text() == "A"
    assert store.find(KEY) is not None
    # It shared the file, and the pool has a whole one again.
    assert store.find(other.key) == other
    assert (store.artifact_path(other.artifact) / "a.txt").read_text() == "A"


def swap(place):
    os.rename(place / "a.txt", place / "c")
    os.rename(place / "sub" / "b.txt", place / "a.txt")
    os.rename(place / "c", place / "sub" / "b.txt")


def rewrite(path, text):
    """Replace a file of an artifact; the pool's file stays as it is."""
    path.unlink()
    path.write_text(text)


HURTS = {
    "delete": lambda place: (place / "sub" / "b.txt").unlink(),
    "truncate": lambda place: rewrite(place / "a.txt", ""),
    "edit": lambda place: rewrite(place / "a.txt", "X"),
    "swap": swap,
    "add": lambda place: (place / "stranger").write_text(""),
    "link": lambda place: (place.rename(place.with_name("moved")), place.symlink_to("moved")),
    "remove the folder": lambda place: place.rename(place.with_name("gone")),
}


@pytest.mark.parametrize("hurt", HURTS)
def test_what_the_pool_still_has_is_mended_without_being_made_again(store, hurt):
    record = put(store, KEY, {"a.txt": "A", "sub/b.txt": "B"})
    place = store.artifact_path(record.artifact)
    assert store.artifacts.is_whole(record)
    HURTS[hurt](place)
    again = Store(store.root)
    assert not again.artifacts.is_whole(record)
    assert again.find(KEY) == record
    assert not place.is_symlink()
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*")) == ["a.txt", "sub", "sub/b.txt"]
    assert [(place / name).read_text() for name in ("a.txt", "sub/b.txt")] == ["A", "B"]
    if hurt != "remove the folder":
        assert [path.stem for path in store.layout.quarantine.iterdir()] == [record.artifact]


def test_files_with_one_name_are_put_aside_side_by_side(store, tmp_path):
    for number in range(3):
        (tmp_path / "bad").write_text(str(number))
        assert store.artifacts.put_aside(tmp_path / "bad").read_text() == str(number)
    assert not (tmp_path / "bad").exists()
    assert [path.stem for path in store.layout.quarantine.iterdir()] == ["bad"] * 3


def test_a_store_that_was_copied_without_its_times_is_whole(store, tmp_path):
    record = put(store, KEY, {"a.txt": "A"})
    shutil.copytree(store.root, tmp_path / "copy", copy_function=shutil.copyfile)
    assert Store(tmp_path / "copy").find(KEY) == record


@pytest.mark.parametrize("target", ["/etc/hostname", "/etc"], ids=["file", "folder"])
def test_a_link_in_an_output_is_refused(tmp_path, target):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to(target)
    with pytest.raises(StepError, match="no plain file"):
        output.take(tmp_path / "out")


def test_an_output_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(StepError, match="left no folder"):
        output.take(tmp_path / "out")


def test_what_a_killed_builder_left_is_swept_and_what_a_living_one_makes_is_not(store):
    code = (
        "import sys, os; from pathlib import Path; from engine.store.store import Store;"
        "print(Store(Path(sys.argv[1])).presence.folder); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(store.root)], stdout=subprocess.PIPE, text=True, check=False)
    left = Path(done.stdout.strip())
    assert left.is_dir()
    (store.root / "staging" / "tmp").write_text("half a note")
    with store.presence.workplace() as mine:
        assert not left.exists()
        assert list((store.root / "staging").iterdir()) == [store.presence.folder]
        other = Store(store.root)
        with other.presence.workplace():
            assert mine.exists()
        other.leave()


def test_a_damaged_pool_file_is_not_shared_further(store):
    record = put(store, KEY, {"a.txt": "A"})
    [pooled] = (store.root / "files").glob("*/*")
    pooled.chmod(0o644)
    pooled.write_text("X")
    assert pooled.samefile(store.artifact_path(record.artifact) / "a.txt")
    put(store, KEY | {"options.a": "2"}, {"a.txt": "A", "b.txt": "B"})
    fresh = store.find(KEY | {"options.a": "2"})
    assert (store.artifact_path(fresh.artifact) / "a.txt").read_text() == "A"


def test_a_record_cut_off_anywhere_or_with_any_bit_flipped_is_no_record(store):
    put(store, KEY, {"a.txt": "A"})
    path = store.record_path(digest_of(KEY))
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        assert store.find(KEY) is None
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        assert store.find(KEY) is None
    assert list(store.records()) == []
    path.write_bytes(whole)
    assert store.find(KEY) is not None


def test_a_record_moved_under_another_key_is_no_hit(store):
    put(store, KEY, {"a.txt": "A"})
    other = KEY | {"options.a": "2"}
    os.rename(store.record_path(digest_of(KEY)), store.record_path(digest_of(other)))
    assert store.find(other) is None


def test_a_trace_that_a_power_cut_tore_is_written_again(store):
    record = SimpleNamespace(trace=digest.of_bytes(b"{}"))
    path = store.trace_path(record.trace)
    for torn in (None, b"", b"{", b"another"):
        if torn is not None:
            path.write_bytes(torn)
        store._keep_trace(record, b"{}")
        assert path.read_bytes() == b"{}"


@pytest.mark.parametrize("number", ["1\n", "99\n"])
def test_a_store_of_another_format_is_left_alone(tmp_path, number):
    (tmp_path / "format").write_text(number)
    with pytest.raises(StoreError, match=f"has format {number.strip()}"):
        Store(tmp_path)
    assert (tmp_path / "format").read_text() == number


def test_a_damaged_stamp_is_written_again(store):
    whole = (store.root / "format").read_bytes()
    for place in range(len(whole)):
        (store.root / "format").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        Store(store.root)
        assert (store.root / "format").read_bytes() == whole


def test_a_place_that_is_a_file_is_one_clear_error(tmp_path):
    (tmp_path / "cache").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        Store(tmp_path / "cache")


def test_a_full_disk_is_one_clear_error_and_leaves_the_old_content(store, monkeypatch):
    put(store, KEY, {"a.txt": "A"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.store.store.os.rename", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        put(store, KEY | {"options.a": "2"}, {"a.txt": "B"})
    assert "free some space" in caught.value.hint
    monkeypatch.undo()
    assert store.find(KEY) is not None
    assert store.find(KEY | {"options.a": "2"}) is None
    store.leave()
    assert list((store.root / "staging").iterdir()) == []


def test_a_record_holds_what_people_ask_for(store):
    put(store, KEY, {"a.txt": "A"})
    raw = unsealed(store.record_path(digest_of(KEY)).read_bytes())
    assert raw == {k: v for k, v in json.loads(store.record_path(digest_of(KEY)).read_text()).items() if k != "seal"}
    assert raw["key"] == KEY
    assert raw["files"]["a.txt"][0] == 1
    assert {"seconds", "peak_bytes", "report", "machine", "artifact", "made_at"} <= raw.keys()
