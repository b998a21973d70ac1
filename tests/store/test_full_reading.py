"""Every stored file is read once, and a file that changed after it was read is read again."""

import pytest
from stores import put

from engine import digest
from engine.store import full_reading
from engine.store.full_reading import FullReading, Verdict
from engine.store.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cache")
    put(store, {"step": "x"}, {"weights": "W" * 500, "same": "W" * 500, "own": "o"})
    return store


def test_links_to_one_file_are_read_once(store, monkeypatch):
    reads = []
    of_file = digest.of_file
    monkeypatch.setattr(full_reading.digest, "of_file", lambda path: reads.append(path) or of_file(path))
    verdict, progress = Verdict(), []
    reading = FullReading(store, verdict, 2, lambda done, total: progress.append((done, total)))
    reading.read()
    assert len(reads) == verdict.files == 2
    assert verdict.bytes == 501
    assert progress == [(1, 2), (2, 2)]
    [weights] = store.layout.artifacts.rglob("weights")
    assert reading.of(weights) == digest.of_bytes(b"W" * 500)
    assert len(reads) == 2


def test_a_file_that_changed_after_it_was_read_is_read_again(store):
    reading = FullReading(store, Verdict(), 1, lambda *_: None)
    reading.read()
    [own] = store.layout.artifacts.rglob("own")
    own.chmod(0o644)
    own.write_bytes(b"changed")
    assert reading.of(own) == digest.of_bytes(b"changed")


def test_a_link_and_a_file_that_is_gone_have_no_digest(store, tmp_path):
    reading = FullReading(store, Verdict(), 1, lambda *_: None)
    (tmp_path / "link").symlink_to(next(store.layout.artifacts.rglob("own")))
    assert reading.of(tmp_path / "link") is None
    assert reading.of(tmp_path / "gone") is None
