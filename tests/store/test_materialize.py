"""A package under `build/` is exactly what its artifact holds: whatever else lies there is repaired or refused."""

import os
import shutil
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.key import key_of
from engine.store import file_lock, output
from engine.store import materialize as materializing
from engine.store.materialize import UNFINISHED, exchange, is_in_place, marker, materialize
from engine.store.store import Store

FILES = {"config.pbtxt": "name", "1/model.onnx": "graph"}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def record(store):
    key = key_of(options={}, code="c", inputs={}, tools={}, facts={}, variables={})
    with store.presence.workplace() as folder:
        out = folder / "out"
        for name, text in FILES.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text)
        record = store.commit(key, out, output.take(out), report={}, seconds=1.0, peak_bytes=1, machine={})
    yield record
    store.leave()


@pytest.fixture
def place(store, record, tmp_path):
    place = tmp_path / "build" / "net"
    materialize(store, record, place)
    return place


def is_exact(place):
    files = {str(path.relative_to(place)): path for path in place.rglob("*") if path.is_symlink() or not path.is_dir()}
    return (
        not place.is_symlink()
        and {name: path.read_text() for name, path in files.items()} == FILES
        and not any(path.is_symlink() or path.stat().st_mode & 0o777 != 0o644 for path in files.values())
        and {path.name for path in place.rglob("*") if path.is_dir()} == {"1"}
    )


def elsewhere(place):
    """Move the package away, and put a link to it in its place."""
    place.rename(place.with_name("moved"))
    place.symlink_to("moved")


def replaced(path, put):
    path.unlink()
    put(path)


def bound(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def linked(path):
    aside = path.parent.parent.parent / "away"
    path.rename(aside)
    path.symlink_to(aside)


def dead_folder(place):
    """Make what a builder that was killed has left of a package."""
    folder = place.parent / UNFINISHED / "net"
    (folder / "abcdefgh" / "package" / "1").mkdir(parents=True)
    (folder / "abcdefgh" / "package" / "1" / "model.onnx").write_text("half")
    (folder / "lock").touch()
    return folder


def without_rights(place):
    (dead_folder(place) / "abcdefgh").chmod(0)


HARMS = {
    "a link to an equal file": lambda place: linked(place / "1" / "model.onnx"),
    "a link to nothing": lambda place: replaced(place / "1" / "model.onnx", lambda path: path.symlink_to("gone")),
    "a link to itself": lambda place: replaced(place / "1" / "model.onnx", lambda path: path.symlink_to("model.onnx")),
    "a pipe": lambda place: replaced(place / "1" / "model.onnx", os.mkfifo),
    "a socket": lambda place: replaced(place / "config.pbtxt", bound),
    "a folder": lambda place: replaced(place / "config.pbtxt", os.mkdir),
    "a further link": lambda place: (place / "more").symlink_to("config.pbtxt"),
    "a further folder": lambda place: (place / "2").mkdir(),
    "a further file": lambda place: (place / "note").write_text("mine"),
    "another mode": lambda place: (place / "config.pbtxt").chmod(0o600),
    "no rights": lambda place: (place / "1").chmod(0),
    "a link in the place of a folder": lambda place: elsewhere(place / "1"),
    "a link in the place of the package": elsewhere,
    "a link to nothing in the place of the package": lambda place: (elsewhere(place), (place.with_name("moved")).rename(
        place.with_name("away"))),
    "a pipe in the place of the marker": lambda place: replaced(marker(place), os.mkfifo),
    "a folder in the place of the marker": lambda place: replaced(marker(place), os.mkdir),
    "the folder of a build that was killed": dead_folder,
    "such a folder without rights": without_rights,
    "the folder that a killed build has locked first": lambda place: (dead_folder(place) / "abcdefgh").rename(
        place.with_name("away")),
    "a folder that a killed build has emptied": lambda place: place.with_name(UNFINISHED).mkdir(),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_whatever_does_not_belong_to_a_package_is_repaired(harm, store, record, place):
    HARMS[harm](place)
    materialize(store, record, place)
    assert is_exact(place), harm
    assert is_in_place(store, record, place)
    assert {path.name for path in place.parent.iterdir()} - {"moved", "away"} == {"net", ".net.artifact"}


def test_what_lies_behind_a_link_in_the_place_of_the_package_or_its_marker_is_not_touched(store, record, place):
    mine = place.with_name("mine")
    mine.mkdir()
    (mine / "file").write_text("mine")
    replaced(marker(place), lambda path: path.symlink_to(mine / "file"))
    materialize(store, record, place)
    shutil.rmtree(place)
    place.symlink_to("mine")
    materialize(store, record, place)
    assert (mine / "file").read_text() == "mine"
    assert is_exact(place)
    assert is_in_place(store, record, place)


@pytest.mark.parametrize("stranger", ["file", "folder", "link", "link to nothing", "pipe"])
def test_what_no_build_made_is_refused_and_stays(stranger, store, record, tmp_path):
    place = tmp_path / "build" / "net"
    place.parent.mkdir()
    other = tmp_path / "other"
    {
        "file": lambda: place.write_text("mine"),
        "folder": lambda: (place.mkdir(), (place / "file").write_text("mine")),
        "link": lambda: (other.mkdir(), place.symlink_to(other)),
        "link to nothing": lambda: place.symlink_to(other),
        "pipe": lambda: os.mkfifo(place),
    }[stranger]()
    before = os.lstat(place)
    with pytest.raises(StoreError, match="is in the way"):
        materialize(store, record, place)
    assert os.path.samestat(os.lstat(place), before)


def test_a_package_is_there_at_every_moment_while_it_is_replaced(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")
    rename = os.rename

    def renamed(old, new, **more):
        assert str(old) != str(place), "the package is away until the next rename"
        rename(old, new, **more)

    monkeypatch.setattr(os, "rename", renamed)
    materialize(store, record, place)
    assert is_exact(place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]


def test_a_builder_that_fails_leaves_the_package_and_nothing_beside_it(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")

    def fails(fresh, other):
        raise FileNotFoundError(2, "No such file or directory", str(other))

    monkeypatch.setattr(materializing, "exchange", fails)
    with pytest.raises(StoreError, match="cannot be written to"):
        materialize(store, record, place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]
    assert (place / "config.pbtxt").read_text() == "older"


def test_a_package_is_replaced_on_a_system_that_cannot_exchange_folders(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not exchange(place, place.parent)
    materialize(store, record, place)
    assert is_exact(place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]


def test_builders_of_several_stores_take_turns_at_one_package(record, place, store, tmp_path, monkeypatch):
    """Each one waits until the one before has ended, and its own folder is new."""
    inside, most, lock = [], [], threading.Lock()
    real = materializing._replace

    def slow(*words):
        with lock:
            inside.append(words[-1])
            most.append(len(inside))
        time.sleep(0.02)
        real(*words)
        with lock:
            inside.remove(words[-1])

    monkeypatch.setattr(materializing, "_replace", slow)
    monkeypatch.setattr(materializing, "_holds", lambda *_: False)
    shutil.copytree(store.root, tmp_path / "copy")
    stores = [store, Store(tmp_path / "copy")] * 4
    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(lambda each: materialize(each, record, place), stores))
    stores[1].leave()
    assert most == [1] * len(stores)
    assert is_exact(place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]


def test_two_folders_or_links_are_exchanged_themselves(tmp_path):
    one, other, link = (tmp_path / name for name in ("one", "other", "link"))
    for folder in (one, other):
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    if not exchange(one, other):
        pytest.skip(f"the file system of {tmp_path} cannot exchange two folders")
    assert [(folder / "name").read_text() for folder in (one, other)] == ["other", "one"]
    link.symlink_to(other)
    assert exchange(one, link)
    assert one.is_symlink()
    assert [(folder / "name").read_text() for folder in (link, other)] == ["other", "one"]
    with pytest.raises(FileNotFoundError) as caught:
        exchange(one, tmp_path / "missing")
    assert (caught.value.filename, caught.value.filename2) == (str(one), str(tmp_path / "missing"))


def test_the_unfinished_folder_of_another_package_stays(store, record, place):
    other = place.parent / UNFINISHED / "net-x"
    other.mkdir(parents=True)
    (place / "config.pbtxt").write_text("older")
    materialize(store, record, place)
    assert list(other.parent.iterdir()) == [other]


def test_without_file_locks_nothing_is_removed_that_may_be_a_living_builders(store, record, place, monkeypatch):
    left = dead_folder(place) / "abcdefgh"
    monkeypatch.setattr(file_lock, "are_supported", lambda folder: False)
    materialize(store, record, place)
    assert left.is_dir()
    assert is_exact(place)


def test_folders_that_ending_builders_remove_are_made_again(tmp_path, monkeypatch):
    """Builders of one package remove the folder of its lock, and the one around it, in any moment."""
    errors, make = [FileExistsError(), FileNotFoundError()], Path.mkdir

    def mkdir(path, *arguments, **options):
        if path.name == "package" and errors:
            raise errors.pop()
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with materializing._turn(tmp_path / "package") as folder:
        assert folder.is_dir()
    assert not errors
    assert list(tmp_path.iterdir()) == []
