"""A package under `build/` is exactly what its artifact holds: whatever else lies there is repaired or refused."""

import os
import socket

import pytest

from engine.errors import StoreError
from engine.key import key_of
from engine.store import file_lock, output
from engine.store import materialize as materializing
from engine.store.materialize import UNFINISHED, is_in_place, leftovers, marker, materialize, temporary
from engine.store.store import Store
from engine.system.exchange import exchange

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
    """Make the temporary folder of a builder that was killed."""
    folder = place.parent / UNFINISHED / "net-abcdefgh"
    (folder / "package" / "1").mkdir(parents=True)
    (folder / "package" / "1" / "model.onnx").write_text("half")
    (folder / "lock").touch()
    return folder


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
    "a folder that a killed build has emptied": lambda place: place.with_name(UNFINISHED).mkdir(),
}  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_whatever_does_not_belong_to_a_package_is_repaired(harm, store, record, place):
    HARMS[harm](place)
    materialize(store, record, place)
    assert is_exact(place), harm
    assert is_in_place(store, record, place)
    assert {path.name for path in place.parent.iterdir()} - {"moved", "away"} == {"net", ".net.artifact"}


def test_a_link_in_the_place_of_the_marker_is_replaced_and_not_followed(store, record, place, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    replaced(marker(place), lambda path: path.symlink_to(precious))
    materialize(store, record, place)
    assert precious.read_text() == "mine"
    assert is_in_place(store, record, place)


def test_what_lies_behind_a_link_in_the_place_of_the_package_is_not_touched(store, record, place):
    mine = place.with_name("mine")
    mine.mkdir()
    (mine / "file").write_text("mine")
    elsewhere(place)
    place.unlink()
    place.symlink_to("mine")
    materialize(store, record, place)
    assert (mine / "file").read_text() == "mine"
    assert is_exact(place)


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


def test_a_package_that_another_builder_moves_away_meanwhile_is_written_again(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")
    overtaken = []

    def exchanged_late(fresh, other):
        if not overtaken:
            overtaken.append(other)
            other.rename(other.with_name("away"))
        return exchange(fresh, other)

    monkeypatch.setattr(materializing, "exchange", exchanged_late)
    materialize(store, record, place)
    assert overtaken == [place]
    assert is_exact(place)


def test_a_builder_that_is_overtaken_again_and_again_gives_up(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")

    def overtaken(fresh, other):
        raise FileNotFoundError(2, "No such file or directory", str(other))

    monkeypatch.setattr(materializing, "exchange", overtaken)
    with pytest.raises(StoreError, match="cannot be written to"):
        materialize(store, record, place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]


def test_a_package_is_replaced_on_a_system_that_cannot_exchange_folders(store, record, place, monkeypatch):
    (place / "config.pbtxt").write_text("older")
    monkeypatch.setattr(materializing, "exchange", lambda *_: False)
    materialize(store, record, place)
    assert is_exact(place)
    assert sorted(path.name for path in place.parent.iterdir()) == [".net.artifact", "net"]


@pytest.fixture
def bare_place(tmp_path):
    """The place of a package, beside which nothing lies."""
    return tmp_path / "net"


@pytest.fixture
def dead(bare_place):
    return dead_folder(bare_place)


def test_a_folder_is_new_for_each_attempt_and_nothing_stays(bare_place):
    with temporary(bare_place) as one, temporary(bare_place) as other:
        assert one != other
        assert sorted(leftovers(bare_place)) == sorted([one, other])
        assert one.stat().st_dev == bare_place.parent.stat().st_dev
    assert list(bare_place.parent.iterdir()) == []


def test_the_folder_of_a_killed_builder_is_removed(bare_place, dead):
    with temporary(bare_place) as own:
        assert leftovers(bare_place) == [own]
    assert list(bare_place.parent.iterdir()) == []


def test_a_folder_without_rights_is_removed(bare_place, dead):
    dead.chmod(0)
    with temporary(bare_place) as own:
        assert leftovers(bare_place) == [own]


def test_the_folder_of_another_package_stays(bare_place, dead):
    other = dead.with_name("net-x-abcdefgh")
    dead.rename(other)
    with temporary(bare_place):
        pass
    assert list(other.parent.iterdir()) == [other]


def test_without_file_locks_nothing_is_removed_that_may_be_a_living_builders(bare_place, dead, monkeypatch):
    monkeypatch.setattr(file_lock, "work", lambda folder: False)
    with temporary(bare_place):
        assert dead.is_dir()
    assert dead.is_dir()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(bare_place, monkeypatch):
    take, removed = file_lock.try_take, []

    def take_late(path, **more):
        if not removed:
            removed.append(path.parent)
            os.rmdir(path.parent)
            os.rmdir(path.parent.parent)
        return take(path, **more)

    monkeypatch.setattr(file_lock, "try_take", take_late)
    with temporary(bare_place) as folder:
        assert folder.is_dir()
        assert removed != [folder]
    assert removed


def test_a_parent_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), temporary(tmp_path / "gone" / "net"):
        pass
