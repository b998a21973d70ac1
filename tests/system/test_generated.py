"""Folders of generated files carry a .gitignore, and folders of users are left alone."""

import subprocess

import pytest

from engine.system import generated


def test_git_ignores_a_folder_that_was_generated(tmp_path):
    generated.make(tmp_path / "build" / "inner")
    (tmp_path / "build" / "inner" / "file").write_text("content")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    shown = subprocess.run(["git", "-C", tmp_path, "status", "--porcelain"], capture_output=True, text=True, check=True)
    assert shown.stdout == ""


def test_a_folder_that_exists_stays_as_it_is(tmp_path):
    generated.make(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_empty_and_what_is_no_folder_is_not(tmp_path):
    assert generated.is_empty(tmp_path)
    assert generated.is_empty(tmp_path / "gone")
    (tmp_path / "file").touch()
    assert not generated.is_empty(tmp_path)
    assert not generated.is_empty(tmp_path / "file")


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "build").write_text("mine")
    with pytest.raises(FileExistsError):
        generated.make(tmp_path / "build")
