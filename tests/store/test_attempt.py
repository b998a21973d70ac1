"""Temporary folders beside a package: nobody removes the folder of a living builder, and nothing stays of dead ones."""

import os

import pytest

from engine.store import attempt, file_lock


@pytest.fixture
def place(tmp_path):
    return tmp_path / "net"


@pytest.fixture
def dead(place):
    """Return the folder of a builder that was killed."""
    folder = place.parent / attempt.FOLDER / "net-abcdefgh"
    (folder / "package" / "1").mkdir(parents=True)
    (folder / "package" / "1" / "model.onnx").write_text("half")
    (folder / "lock").touch()
    return folder


def test_a_folder_is_new_for_each_attempt_and_nothing_stays(place):
    with attempt.temporary(place) as one, attempt.temporary(place) as other:
        assert one != other
        assert sorted(attempt.leftovers(place)) == sorted([one, other])
        assert one.stat().st_dev == place.parent.stat().st_dev
    assert list(place.parent.iterdir()) == []


def test_the_folder_of_a_killed_builder_is_removed(place, dead):
    with attempt.temporary(place) as own:
        assert attempt.leftovers(place) == [own]
    assert list(place.parent.iterdir()) == []


def test_a_folder_without_rights_is_removed(place, dead):
    dead.chmod(0)
    with attempt.temporary(place) as own:
        assert attempt.leftovers(place) == [own]


def test_the_folder_of_another_package_stays(place, dead):
    other = dead.with_name("net-x-abcdefgh")
    dead.rename(other)
    with attempt.temporary(place):
        pass
    assert list(other.parent.iterdir()) == [other]


def test_without_file_locks_nothing_is_removed_that_may_be_a_living_builders(place, dead, monkeypatch):
    monkeypatch.setattr(file_lock, "work", lambda folder: False)
    with attempt.temporary(place):
        assert dead.is_dir()
    assert dead.is_dir()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(place, monkeypatch):
    take, removed = file_lock.try_take, []

    def take_late(path, **more):
        if not removed:
            removed.append(path.parent)
            os.rmdir(path.parent)
            os.rmdir(path.parent.parent)
        return take(path, **more)

    monkeypatch.setattr(file_lock, "try_take", take_late)
    with attempt.temporary(place) as folder:
        assert folder.is_dir()
        assert removed != [folder]
    assert removed


def test_a_parent_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError), attempt.temporary(tmp_path / "gone" / "net"):
        pass
