"""The stat cache: files that are read again, and files that are trusted by their stat row."""

import mmap
import os
import time

import pytest

from engine import digest
from engine.store import stat_cache
from engine.store.stat_cache import COARSE_NS, TICK_NS, StatCache, is_settled, settled_row
from engine.store.store import Store


@pytest.fixture
def notes(tmp_path):
    return Store(tmp_path / "cache").notes


@pytest.fixture
def reads(monkeypatch):
    """The paths that were read."""
    paths = []

    def path_of(file):
        return os.readlink(f"/proc/self/fd/{file.fileno()}")

    real = stat_cache.digest.of_open
    monkeypatch.setattr(stat_cache.digest, "of_open", lambda file: paths.append(path_of(file)) or real(file))
    return paths


def settled(path, text):
    """Write a file and wait until the clock has passed its change time."""
    path.write_text(text)
    time.sleep(3 * TICK_NS / 1e9)
    return path


def test_an_unchanged_file_is_not_read_again_not_even_by_the_next_build(notes, tmp_path, reads):
    file = settled(tmp_path / "big", "content")
    first = StatCache(notes)
    content = first.digest(file)
    first.save()
    assert first.digest(file) == StatCache(notes).digest(file) == content
    assert reads == [str(file)]


def test_a_file_hashed_within_a_tick_of_its_change_is_read_again(notes, tmp_path, reads):
    file = tmp_path / "young"
    file.write_text("one")
    cache = StatCache(notes)
    cache.digest(file)
    cache.digest(file)
    assert len(reads) == 2


@pytest.mark.parametrize("edit", ["in place", "by another file", "by an older file"])
def test_an_edit_that_keeps_size_and_time_is_seen(notes, tmp_path, edit):
    older = settled(tmp_path / "older", "old")
    file = settled(tmp_path / "weights", "one")
    cache = StatCache(notes)
    before = cache.digest(file)
    status = file.stat()
    target = {"in place": file, "by another file": tmp_path / "new", "by an older file": older}[edit]
    if target is not older:
        target.write_text("two")
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.replace(file)
    assert cache.digest(file) != before


def test_a_clock_set_back_makes_nothing_settled_and_one_of_whole_seconds_needs_two_of_them():
    now = time.time_ns()
    assert not is_settled((1, 1, 1, 1, now + 10**12), now)
    assert is_settled((1, 1, 1, now + 10**12, now - TICK_NS - 10**6 | 1), now)
    second = 1_700_000_000 * 10**9
    assert not is_settled((1, 1, 1, 1, second), second + TICK_NS + 1)
    assert is_settled((1, 1, 1, 1, second), second + COARSE_NS + 1)


def test_a_file_system_that_may_not_tell_is_not_trusted(notes, tmp_path, reads, monkeypatch):
    file = settled(tmp_path / "file", "one")
    monkeypatch.setattr(stat_cache, "tells_changes", lambda _: False)
    cache = StatCache(notes)
    cache.digest(file)
    cache.digest(file)
    assert len(reads) == 2


def test_a_second_write_through_an_open_mapping_is_seen(notes, tmp_path):
    if not stat_cache.tells_changes(tmp_path):
        pytest.skip("the temporary folder is on a file system that does not tell of every change")
    file = settled(tmp_path / "weights", "a" * mmap.PAGESIZE)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        mapping[0:1] = b"b"  # from here on the page can be written without a new time stamp
        time.sleep(3 * TICK_NS / 1e9)
        first = StatCache(notes)
        before = first.digest(file)
        first.save()
        time.sleep(3 * TICK_NS / 1e9)
        mapping[0:1] = b"c"
        assert StatCache(notes).digest(file) != before


@pytest.fixture
def lying(notes, tmp_path):
    """A file whose content changed under its remembered stat row, as on a disk that was written to from elsewhere."""
    file = settled(tmp_path / "weights", "one")
    cache = StatCache(notes)
    before = cache.digest(file)
    cache.save()
    row = stat_cache.stat_row(settled(file, "eno"))
    notes.keep("stat", "files", {stat_cache.inode(row): [*stat_cache.entry(row, before), str(file)]})
    return file


def test_what_no_time_stamp_tells_is_believed_unless_everything_is_read_afresh(notes, lying, reads):
    assert StatCache(notes).digest(lying) != digest.of_bytes(b"eno")
    assert reads == []
    afresh = StatCache(notes, afresh=True)
    assert afresh.digest(lying) == afresh.digest(lying) == digest.of_bytes(b"eno")
    assert reads == [str(lying)]
    assert afresh.contradicted == [str(lying)]


@pytest.mark.parametrize("tells", [True, False])
def test_what_was_read_afresh_counts_for_the_next_build_also_where_it_cannot_be_remembered(
    notes, lying, monkeypatch, tells
):
    afresh = StatCache(notes, afresh=True)
    monkeypatch.setattr(stat_cache, "tells_changes", lambda _: tells)
    afresh.digest(lying)
    afresh.save()
    assert StatCache(notes).digest(lying) == digest.of_bytes(b"eno")


def test_sources_are_read_again_and_a_wrong_digest_is_forgotten(notes, lying, tmp_path):
    cache = StatCache(notes)
    cache.digest(settled(tmp_path / "cache" / "stored", "not a source"))
    cache.save()
    cache = StatCache(notes)
    assert list(cache.read_outside()) == [(lying, 3, False)]
    cache.save()
    assert list(StatCache(notes).read_outside()) == []


@pytest.mark.parametrize(
    "case",  # the mount of today, a change time in whole seconds, and whether the digest is believed
    [
        ("boot/ext4/1", False, True),
        ("boot/ext4/1", True, True),
        ("boot/ext4/2", False, False),  # mounted again: another disk may lie there
        ("boot/squashfs/1", False, False),
        ("restarted/ext4/1", False, True),
        ("restarted/ext4/1", True, False),  # a program wrote this time, not the clock of a kernel
        (None, False, True),  # a device that is not in the table of mounts
    ],
)
def test_a_file_system_that_was_mounted_again_is_read_again(case, notes, tmp_path, monkeypatch):
    now, whole_seconds, believed = case
    monkeypatch.setattr(stat_cache, "mounted", lambda _: "boot/ext4/1")
    file = settled(tmp_path / "weights", "one")
    cache = StatCache(notes)
    cache.digest(file)
    if whole_seconds:
        next(iter(cache._known.values()))[2] = 10**18
    cache.save()
    monkeypatch.setattr(stat_cache, "mounted", lambda _: now)
    assert bool(StatCache(notes)._earlier) is believed
    cache = StatCache(notes)
    cache.digest(settled(tmp_path / "other", "two"))
    cache.save()
    names = {entry[4] for entry in notes.get("stat", "files").values()}
    assert (str(file) in names) is believed


def test_two_builds_at_once_keep_what_both_learned(notes, tmp_path, reads):
    one, two = (settled(tmp_path / name, name) for name in ("one", "two"))
    first, second = StatCache(notes), StatCache(notes)
    first.digest(one)
    second.digest(two)
    first.save()
    second.save()
    reads.clear()
    fresh = StatCache(notes)
    fresh.digest(one)
    fresh.digest(two)
    assert reads == []


def test_a_young_file_is_looked_at_again_once_a_further_change_would_show(tmp_path):
    file = tmp_path / "file"
    file.write_text("one")
    assert is_settled(settled_row(file), time.time_ns())


def test_a_file_from_the_future_is_not_waited_for(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("one")
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    assert settled_row(tmp_path / "file") == stat_cache.stat_row(tmp_path / "file")
