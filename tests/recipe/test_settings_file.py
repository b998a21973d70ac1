"""Files of settings: their values, and one error with its place for what is wrong."""

import pytest

from engine.errors import RecipeError, UsageError
from engine.recipe import settings_file
from engine.recipe.project import cache_of


def of(text, folder):
    (folder / "recipe.toml").write_text(text)
    return settings_file.of_project(str(folder))


def test_a_project_without_the_file_has_no_settings(tmp_path):
    assert settings_file.of_project(str(tmp_path)) == {}


def test_the_settings_of_a_project(tmp_path):
    text = 'cache = "../store"\njobs = 3\nremote = "s3://bucket/models"\n'
    remote = {"url": "s3://bucket/models"}
    assert of(text, tmp_path) == {"cache": f"{tmp_path}/../store", "jobs": 3, "remote": remote}
    assert of('[remote]\nurl = "s3://bucket/models"\n', tmp_path) == {"remote": remote}


def test_the_cache_starts_at_the_folder_of_the_file_and_may_start_at_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert of('cache = "~/store"', tmp_path)["cache"] == "/home/me/store"
    assert of('cache = "/store"', tmp_path)["cache"] == "/store"
    (tmp_path / "recipes").mkdir()
    recipe = str(tmp_path / "recipes" / "a.yaml")
    of('cache = "store"', tmp_path)
    assert cache_of(recipe) == str(tmp_path / "store")
    of("jobs = 2", tmp_path)
    assert cache_of(recipe) == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("text", "place", "what", "hint"),
    [
        ('cahce = "x"', "1:1", "`cahce` is no setting", "did you mean `cache`?"),
        ('jobs = 2\nthreads = "x"', "2:1", "`threads` is no setting", "known here: cache, jobs, remote"),
        ('# jobs\n jobs = "3"', "2:2", "`jobs` is the text '3'", "write a whole number of 1 or more"),
        ("jobs = 0", "1:1", "`jobs` is 0", "write a whole number of 1 or more"),
        ("jobs = true", "1:1", "`jobs` is true", "write a whole number of 1 or more"),
        ("cache = 3", "1:1", "`cache` is 3", "write a text in quotes"),
        ("remote = 3", "1:1", "`remote` is 3", "write a table, [remote]"),
        ('[remote]\nurll = "x"', "2:1", "`remote.urll` is no setting", "did you mean `url`?"),
        ('remote.push = "x"', "1:8", "`remote.push` is no setting", "known here: url"),
        ("jobs = 2\ncache = x", "2:9", "this is no TOML: Invalid value", 'a setting is written `cache = "DIR"`'),
        ('cache: "x"', "1:6", "this is no TOML: Expected '=' after a key", 'a setting is written `cache = "DIR"`'),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_a_hint(text, place, what, hint, tmp_path):
    with pytest.raises(RecipeError) as refused:
        of(text, tmp_path)
    error = refused.value
    assert str(error.position) == f"{tmp_path}/recipe.toml:{place}"
    assert error.what.startswith(what)
    assert error.hint == hint


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "recipe.toml").mkdir()
    with pytest.raises(UsageError, match="the settings cannot be read"):
        settings_file.of_project(str(tmp_path))
