"""Failures of the system are named by their cause, also behind other errors, and never blamed on the program."""

import errno
import os

import pytest

from engine.system import limits


def raised(error, behind=None):
    """Return an error as it is caught, raised from another one."""
    try:
        raise error from behind
    except type(error) as caught:
        return caught


def system(number, path=None):
    return OSError(number, os.strerror(number), path)


REACHED = {
    "too many open files": system(errno.EMFILE),
    "memory is used up": MemoryError(),
    "processes or threads": RuntimeError("can't start new thread"),
    "disk is full": system(errno.ENOSPC, "/store/x"),
    "quota": system(errno.EDQUOT),
    "read-only": system(errno.EROFS),
    "does not give you the right": system(errno.EACCES, "/secret"),
    "larger than the system allows": system(errno.EFBIG),
    "reports an error": system(errno.EIO),
}


@pytest.mark.parametrize("words", REACHED)
def test_a_limit_is_named_with_a_hint_also_behind_another_error(words):
    for error in (REACHED[words], raised(ValueError("later"), REACHED[words])):
        limit = limits.reached(error)
        assert words in limit.what
        assert limit.hint
        assert limits.failure(error).what == limit.what


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("libx.so: cannot open shared object file: Too many open files", "too many open files"),
        ("libx.so: failed to map segment from shared object", "memory"),
        ("DefaultCPUAllocator: can't allocate memory: Cannot allocate memory", "memory"),
    ],
)
def test_a_limit_that_only_the_text_of_a_tool_names_is_named(text, words):
    assert words in limits.reached(ImportError(text, name="numpy")).what


def test_a_package_that_recipe_needs_and_lacks_is_named():
    error = limits.failure(ModuleNotFoundError("No module named 'xxhash'", name="xxhash"))
    assert "'xxhash'" in error.what
    assert "install" in error.hint
    assert limits.failure(ModuleNotFoundError("No module named 'engine.gone'", name="engine.gone")) is None


def test_any_other_refusal_of_the_system_names_its_file():
    assert "/some/place" in limits.failure(system(errno.ELOOP, "/some/place")).what


def test_an_error_of_the_program_is_none_of_the_system():
    assert limits.failure(KeyError("x")) is None
    assert limits.reached(system(errno.ENOENT, "/gone")) is None


def test_a_folder_that_is_gone_is_the_cause_of_what_fails_for_it(tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    with pytest.raises(FileNotFoundError) as gone:
        os.getcwd()
    monkeypatch.chdir(tmp_path)
    assert limits.lost_folder() is None
    place.mkdir()
    os.chdir(place)
    place.rmdir()
    assert "working folder does not exist" in limits.failure(gone.value).what
