"""Artifacts are whole or not, are mended from the pool, and damaged ones are put aside."""

import os

import pytest
from stores import flip, put

from engine.store.store import Store

FILES = {"weights": "W" * 500, "sub/own": "o"}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def record(store):
    return put(store, {"step": "x"}, FILES)


def damage(store, record, random_bytes):
    """Replace a file of the artifact by a damaged copy; the pool's file stays as it is."""
    path = store.artifact_path(record.artifact) / "weights"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    flip(path, random_bytes)


@pytest.fixture
def random_bytes():
    import random

    return random.Random(1)


def test_an_artifact_with_another_content_a_stranger_or_as_a_link_is_not_whole(store, record, random_bytes, tmp_path):
    folder = store.artifact_path(record.artifact)
    assert store.artifacts.is_whole(record)
    (folder / "stranger").write_text("")
    assert not store.artifacts.is_whole(record)
    (folder / "stranger").unlink()
    damage(store, record, random_bytes)
    assert not store.artifacts.is_whole(record)
    os.rename(folder, tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert not store.artifacts.is_whole(record)


def test_a_damaged_artifact_is_mended_from_the_pool_and_put_aside(store, record, random_bytes, tmp_path):
    damage(store, record, random_bytes)
    (tmp_path / "work").mkdir()
    assert store.artifacts.mend(record, tmp_path / "work")
    assert store.artifacts.is_whole(record)
    assert [path.stem for path in store.layout.quarantine.iterdir()] == [record.artifact]


def test_files_with_one_name_are_put_aside_side_by_side(store, tmp_path):
    for number in range(3):
        (tmp_path / "bad").write_text(str(number))
        assert store.artifacts.put_aside(tmp_path / "bad").read_text() == str(number)
    assert not (tmp_path / "bad").exists()
    assert [path.stem for path in store.layout.quarantine.iterdir()] == ["bad"] * 3
