"""The stat cache: files that are read again, and files that are trusted by their stat row."""

import os
import time

import pytest

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
    real = stat_cache.digest.of_file
    monkeypatch.setattr(stat_cache.digest, "of_file", lambda path: paths.append(str(path)) or real(path))
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


@pytest.mark.parametrize("replace", [False, True], ids=["in place", "by another file"])
def test_an_edit_that_keeps_size_and_time_is_seen(notes, tmp_path, replace):
    file = settled(tmp_path / "weights", "one")
    cache = StatCache(notes)
    before = cache.digest(file)
    status = file.stat()
    target = tmp_path / "new" if replace else file
    target.write_text("two")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.replace(file)
    assert cache.digest(file) != before


def test_an_older_file_put_in_its_place_is_seen(notes, tmp_path):
    older = settled(tmp_path / "older", "one")
    file = settled(tmp_path / "file", "two")
    cache = StatCache(notes)
    before = cache.digest(file)
    older.replace(file)
    assert cache.digest(file) != before


def test_a_clock_set_back_makes_nothing_settled():
    now = time.time_ns()
    assert not is_settled((1, 1, 1, 1, now + 10**12), now)
    assert is_settled((1, 1, 1, now + 10**12, now - TICK_NS - 10**6 | 1), now)


def test_a_clock_of_whole_seconds_needs_two_of_them():
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
