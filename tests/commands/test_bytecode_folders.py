"""Folders for compiled modules are made before a build, so that Python makes none in its middle."""

import os
import sys
from unittest.mock import Mock

import pytest

from engine.commands.build import _make_bytecode_folders as make_folders


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    for name in ("a.py", "inner/b.py", "inner/deeper/c.py", "data/table.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return tmp_path


def folders(package):
    return {str(path.relative_to(package)) for path in package.rglob("*") if path.is_dir()}


def test_each_folder_with_modules_gets_one_if_it_can_be_written_and_the_second_time_nothing_is_new(
    package, monkeypatch
):
    with monkeypatch.context() as nobody_may_write:
        nobody_may_write.setattr(os, "mkdir", Mock(side_effect=PermissionError))
        assert not make_folders(str(package))
    assert make_folders(str(package))
    own = {"__pycache__", "inner/__pycache__", "inner/deeper/__pycache__"}
    assert folders(package) == {"inner", "inner/deeper", "data", *own}
    assert not make_folders(str(package))


@pytest.mark.parametrize(("name", "value"), [("dont_write_bytecode", True), ("pycache_prefix", "/elsewhere")])
def test_where_python_writes_none_there_nothing_is_made(package, monkeypatch, name, value):
    monkeypatch.setattr(sys, name, value)
    assert not make_folders(str(package))
    assert folders(package) == {"inner", "inner/deeper", "data"}
