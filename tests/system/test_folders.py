"""Folders: the option `-C DIR`, as make and git have it, and the .gitignore of folders of generated files."""

import os
import subprocess

import pytest

from engine import cli
from engine.errors import UsageError
from engine.system import folders


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    (tmp_path / "models" / "inner").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "rest", "folder"),
    [
        ("-C models build a.yaml", "build a.yaml", "models"),
        ("build -C models a.yaml", "build a.yaml", "models"),
        ("-Cmodels build a.yaml", "build a.yaml", "models"),
        ("-C models -C inner list", "list", "models/inner"),
        ("serve a.yaml -- -C models", "serve a.yaml -- -C models", "."),
    ],
)
def test_the_folder_is_entered_and_the_rest_is_the_command(words, rest, folder, place):
    assert folders.enter(words.split()) == rest.split()
    assert os.path.realpath(os.curdir) == os.path.realpath(place / folder)


@pytest.mark.parametrize(
    ("words", "what", "hint"),
    [
        ("-C modles list", "-C modles: no such file or directory", "did you mean models?"),
        ("-C models/iner list", "-C models/iner: no such file or directory", "did you mean models/inner?"),
        ("list -C", "-C names no folder", "write -C DIR before the command"),
    ],
)
def test_a_folder_that_is_not_there_is_an_error_with_the_nearest(words, what, hint):
    with pytest.raises(UsageError) as refused:
        folders.enter(words.split())
    assert (refused.value.what, refused.value.hint) == (what, hint)


def test_a_command_runs_there(place, capsys):
    (place / "models" / "recipes").mkdir()
    with pytest.raises(SystemExit) as ended:
        cli.main(["-C", "models", "check", "nowhere.yaml"])
    assert ended.value.code == 2
    assert os.path.realpath(os.curdir) == os.path.realpath(place / "models")
    assert "error: nowhere.yaml" in capsys.readouterr().err


def test_the_help_names_it(capsys):
    for words in (["--help"], ["build", "--help"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert "-C DIR" in capsys.readouterr().out


def test_git_ignores_a_folder_that_was_generated_and_one_that_exists_stays_as_it_is(tmp_path):
    folders.make_generated(tmp_path / "models" / "inner")
    assert list((tmp_path / "models" / "inner").iterdir()) == []
    folders.make_generated(tmp_path / "build" / "inner")
    (tmp_path / "build" / "inner" / "file").write_text("content")
    with pytest.raises(FileExistsError):
        folders.make_generated(tmp_path / "build" / "inner" / "file")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    shown = subprocess.run(["git", "-C", tmp_path, "status", "--porcelain"], capture_output=True, text=True, check=True)
    assert shown.stdout == ""


def test_what_is_missing_is_empty_and_what_is_no_folder_is_not(tmp_path):
    assert folders.is_empty(tmp_path / "models" / "inner")
    assert folders.is_empty(tmp_path / "gone")
    (tmp_path / "file").touch()
    assert not folders.is_empty(tmp_path)
    assert not folders.is_empty(tmp_path / "file")
