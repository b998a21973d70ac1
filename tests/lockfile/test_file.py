"""The path of a lock's file, and when the file is written."""

import pytest
from small_lock import LOCK

from engine.errors import LockError, UsageError
from engine.lockfile import file


def test_a_lock_lies_beside_its_recipe_and_belongs_to_one(tmp_path):
    recipe = tmp_path / "a.b.yaml"
    assert file.path_of(recipe) == tmp_path / "a.b.lock"
    (tmp_path / "a.b.yml").write_text("")
    with pytest.raises(UsageError, match="would share the lock"):
        file.path_of(recipe)
    with pytest.raises(UsageError, match="called like a lock"):
        file.path_of(tmp_path / "a.lock")


def test_a_lock_is_written_only_where_it_says_something_new(tmp_path):
    path = tmp_path / "r.lock"
    assert file.write(path, LOCK)
    before = path.stat()
    assert not file.write(path, LOCK)
    assert path.stat() == before
    assert file.find(path) == LOCK
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]


def test_a_folder_in_the_way_is_one_clear_error(tmp_path):
    (tmp_path / "r.lock").mkdir()
    with pytest.raises(LockError, match="cannot be read: Is a directory"):
        file.find(tmp_path / "r.lock")
    with pytest.raises(LockError, match="cannot be written"):
        file.write(tmp_path / "r.lock", LOCK)
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]
