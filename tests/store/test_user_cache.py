"""Blobs of the user: read back whole or not at all, and bounded in size."""

import os

import pytest

from engine.store import user_cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the blobs of the kind `kind`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "recipe" / "kind"


def test_a_blob_is_read_as_it_was_written():
    assert user_cache.read_blob("kind", "one") is None
    user_cache.keep_blob("kind", "one", b"content")
    assert bytes(user_cache.read_blob("kind", "one")) == b"content"
    user_cache.drop_blob("kind", "one")
    assert user_cache.read_blob("kind", "one") is None


@pytest.mark.parametrize("length", [0, 10, 38])
def test_a_torn_blob_counts_as_missing(folder, length):
    user_cache.keep_blob("kind", "one", b"content")
    whole = (folder / "one").read_bytes()
    assert length < len(whole)
    (folder / "one").write_bytes(whole[:length])
    assert user_cache.read_blob("kind", "one") is None
    (folder / "other").write_bytes(whole)
    assert user_cache.read_blob("kind", "other") is None, "it was written under another name"


def test_the_blobs_that_were_used_longest_ago_are_removed(folder, monkeypatch):
    monkeypatch.setattr(user_cache, "MOST_BYTES", 350)
    for number, name in enumerate(("first", "second", "third")):
        user_cache.keep_blob("kind", name, bytes(80))
        os.utime(folder / name, ns=(number, number))
    user_cache.read_blob("kind", "first")
    user_cache.keep_blob("kind", "fourth", bytes(80))
    user_cache.keep_blob("kind", "huge", bytes(351))
    assert {path.name for path in folder.iterdir()} == {"first", "third", "fourth"}


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    user_cache.keep_blob("kind", "one", b"content")
    assert user_cache.read_blob("kind", "one") is None
