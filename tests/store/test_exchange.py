"""Two folders change places at one moment."""

import os
import sys
import threading

import pytest

from engine.store.materialize import exchange


@pytest.fixture
def folders(tmp_path):
    pair = tmp_path / "one", tmp_path / "other"
    for folder in pair:
        folder.mkdir()
        (folder / "name").write_text(folder.name)
    if not exchange(*pair):
        pytest.skip(f"the file system of {tmp_path} cannot exchange two folders")
    exchange(*pair)
    return pair


def test_each_has_the_others_content(folders):
    one, other = folders
    assert exchange(one, other)
    assert (one / "name").read_text() == "other"
    assert (other / "name").read_text() == "one"


def test_a_link_is_exchanged_itself(folders, tmp_path):
    one, other = folders
    (tmp_path / "link").symlink_to(other)
    assert exchange(one, tmp_path / "link")
    assert one.is_symlink()
    assert (tmp_path / "link" / "name").read_text() == "one"
    assert (other / "name").read_text() == "other"


def test_no_reader_sees_neither(folders):
    ended = threading.Event()

    def write():
        for _ in range(2000):
            exchange(*folders)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    names = []
    while not ended.is_set():
        names.append((folders[0] / "name").read_text())
    writer.join()
    assert set(names) <= {"one", "other"}
    assert names


def test_a_missing_path_is_an_error_that_names_both(folders, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        exchange(folders[0], tmp_path / "missing")
    assert caught.value.filename == str(folders[0])
    assert caught.value.filename2 == str(tmp_path / "missing")


def test_another_system_says_that_it_cannot(folders, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not exchange(*folders)
    assert os.listdir(folders[0]) == ["name"]
