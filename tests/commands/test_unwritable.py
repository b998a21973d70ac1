"""A place where nothing can be written is one error with exit code 2, before anything is built or read."""

import pytest
from onnx import save

from tests.support import unseen_models
from tests.support.program import Program

_PLACES = {"file": "afile", "below a file": "afile/below", "no folder of a disk": "/proc/none", "device": "/dev/null"}
_BUILDING = ("build", "package", "serve")
_WITH_A_STORE = ("build", "why", "show", "lock", "logs", "history", "report")
_FILES = {
    "new": ("new", "net.onnx", "-o"),
    "report": ("report", "it.yaml", "-o"),
    "cache export": ("cache", "export", "it.yaml", "-o"),
    "cache keygen": ("cache", "keygen", "-o"),
}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "afile").touch()
    save(unseen_models.series(), tmp_path / "net.onnx")
    fields = "name: it\nmodel: {source: net.onnx}\nprofiles: [{batch_size: [1, 1, 8]}]\n"
    (tmp_path / "it.yaml").write_text(fields)
    return tmp_path


def _refused(project, *words):
    done = Program(project)(*words, expect=2)
    assert done.stderr.count("error: ") == 1
    assert "hint: " in done.stderr
    assert "running" not in done.stderr
    return done.stderr


def _pairs(commands, places):
    """Return the first command with each place and each command with the first place; `--whole` has all pairs."""
    rare = pytest.mark.whole("the command with the first place, and the first command with the place")
    return [
        pytest.param(command, place, marks=rare if command != commands[0] and place != places[0] else ())
        for command in commands
        for place in places
    ]


@pytest.mark.parametrize(("command", "place"), _pairs(_BUILDING, [*_PLACES]))
def test_packages_go_to_no_place_that_cannot_be_written(project, command, place):
    assert f"packages cannot go to {_PLACES[place]}" in _refused(project, command, "it.yaml", "-o", _PLACES[place])


@pytest.mark.parametrize(("command", "place"), _pairs(_WITH_A_STORE, [*_PLACES]))
def test_a_store_that_cannot_be_written_is_a_fault_of_the_command_line(project, command, place):
    words = (command, "it.yaml", *(("fetch",) if command == "logs" else ()))
    assert "cannot be used" in _refused(project, *words, "--cache", _PLACES[place])


@pytest.mark.parametrize(("command", "place"), _pairs([*_FILES], ["afile/below", "/proc/none"]))
def test_a_file_goes_to_no_place_that_cannot_be_written(project, command, place):
    error = _refused(project, *_FILES[command], place)
    assert "cannot be written" in error
    assert "hint: name another file" in error
