"""What is no file in a shared folder: named pipes, sockets, devices and links in place of records and blobs."""

import asyncio
import os

import pytest
from fire import odd_files
from stores import pushed, put

from engine.store.remote.remotes import remote_of

KEY = {"step": "x", "code": "c", "inputs.model": "m"}
FILES = {"model.onnx": "weights " * 5000}


@pytest.fixture
def shared(machine, folder, tmp_path):
    """A folder with one record and its blob, and its remote."""
    pushed(machine("a", folder, writes=True), KEY, FILES)
    return tmp_path / "shared" / "v1", folder


def replaced(folder, kind):
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert files
    for path in files:
        odd_files.put(kind, path)


@pytest.mark.parametrize("kind", odd_files.ODD)
def test_a_record_that_is_no_file_is_no_record_and_is_named(shared, machine, kind):
    folder, remote = shared
    replaced(folder / "records", kind)
    other = machine("b", remote, brief=True)
    assert other.find(KEY) is None
    line = other.tier.summary()
    assert "\n" not in line
    assert str(folder.parent) in line or kind == "link to nothing"


@pytest.mark.parametrize("kind", odd_files.ODD)
def test_a_blob_that_is_no_file_is_not_brought_and_is_named(shared, machine, kind):
    folder, remote = shared
    replaced(folder / "blobs", kind)
    other = machine("b", remote, brief=True)
    assert not other.bring(other.find(KEY))
    assert str(folder.parent) in other.tier.summary()


@pytest.mark.parametrize("kind", odd_files.ODD)
def test_a_push_beside_what_is_no_file_ends(shared, machine, kind):
    folder, remote = shared
    replaced(folder, kind)
    again = machine("c", remote, writes=True, brief=True)
    again.tier.push(put(again, KEY, FILES))
    again.tier.wait()
    assert "\n" not in again.tier.summary()


def test_a_folder_that_is_a_named_pipe_is_in_trouble(machine, remote_at, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    store = machine("a", remote_at(f"file://{tmp_path}/pipe"), writes=True, brief=True)
    assert store.find(KEY) is None
    store.tier.push(put(store, KEY, FILES))
    assert store.tier.wait() is not None
    assert "is left alone" in store.tier.summary()


def test_a_listing_has_regular_files_with_names_that_are_text(shared):
    folder, remote = shared
    (folder / "blobs" / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    (folder / "blobs" / "model#1").write_bytes(b"unfinished")
    os.mkfifo(folder / "blobs" / "pipe")
    (folder / "blobs" / "again").symlink_to(folder / "blobs")

    async def names():
        place = remote_of(remote.url, environ={}, writes=False)
        return [entry.name async for entry in place.list("v1/blobs")]

    [name] = asyncio.run(names())
    assert name.startswith("v1/blobs/")
    assert name.endswith(".zst")
