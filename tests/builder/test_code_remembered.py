"""The digests of the code of this program's steps are computed once for the same files of the program."""

import shutil
from pathlib import Path
from typing import ClassVar

import pytest
from engine.builder.code.digests import Code
from engine.builder.code.remembered import RememberedCode

from engine.builder.code import digests, remembered
from engine.digest import Digest
from engine.step import Step
from engine.steps.fuse import Fuse
from engine.store import user_notes


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "notes"))
    return user_notes.notes()


@pytest.fixture
def copy(tmp_path):
    """A copy of this program's files."""
    return Path(
        shutil.copytree(remembered._root(), tmp_path / "copy" / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    )


@pytest.fixture
def analyzed(monkeypatch):
    """The steps whose code was analyzed."""
    steps = []
    original = digests.of_step
    monkeypatch.setattr(digests, "of_step", lambda step: steps.append(step) or original(step))
    return steps


class Elsewhere(Step):
    """A step of another package."""

    makes: ClassVar[str] = "model"

    def run(self, out):
        """Write nothing."""


def test_the_code_of_a_step_is_analyzed_once(notes, analyzed):
    first = RememberedCode(notes).of_step(Fuse())
    second = RememberedCode(notes).of_step(Fuse())
    assert len(analyzed) == 1
    assert (second.digest, second.files) == (first.digest, first.files)
    assert {path: row.st_ino for path, row in second.before.items()} == {
        path: row.st_ino for path, row in first.before.items()
    }


def test_an_equal_copy_of_the_program_has_the_same_code_with_its_own_files(notes, analyzed, copy, monkeypatch):
    here = RememberedCode(notes).of_step(Fuse())
    monkeypatch.setattr(remembered, "_root", lambda: copy)
    there = RememberedCode(notes).of_step(Fuse())
    assert len(analyzed) == 1
    assert there.digest == here.digest
    assert all(path.is_relative_to(copy) and path.exists() for path in there.files)
    assert set(there.before) <= set(there.files)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root.joinpath("steps", "fuse.py").write_text("changed"),
        lambda root: root.joinpath("kit", "more.py").write_text(""),
        lambda root: root.joinpath("kit", "accuracy", "agreement.py").unlink(),
        lambda root: root.joinpath("kit", "accuracy", "agreement.py").rename(root / "kit" / "other.py"),
        lambda root: next(root.rglob("*.typed")).write_text("data"),
    ],
    ids=["an edit", "a new file", "a missing file", "another name", "a file that is no module"],
)
def test_after_any_change_of_the_program_the_code_is_analyzed_again(notes, analyzed, copy, monkeypatch, change):
    RememberedCode(notes).of_step(Fuse())
    change(copy)
    monkeypatch.setattr(remembered, "_root", lambda: copy)
    RememberedCode(notes).of_step(Fuse())
    assert len(analyzed) == 2


@pytest.mark.parametrize("edits", [0, 1])
def test_a_file_that_changes_during_the_analysis_leaves_nothing_to_remember(notes, copy, monkeypatch, edits):
    monkeypatch.setattr(remembered, "_root", lambda: copy)

    def analyze(_):
        for number in range(edits):
            (copy / "kit" / f"more{number}.py").write_text("")
        return Code(Digest("0" * 32), (copy / "steps" / "fuse.py",), {})

    monkeypatch.setattr(digests, "of_step", analyze)
    RememberedCode(notes).of_step(Fuse())
    assert len(list(notes.every("code"))) == 1 - edits


def test_neither_a_step_of_another_package_nor_a_paranoid_build_relies_on_notes(notes, analyzed):
    for _ in range(2):
        RememberedCode(notes).of_step(Elsewhere())
        RememberedCode(notes, afresh=True).of_step(Fuse())
    assert len(analyzed) == 4


def test_a_note_of_another_form_is_no_note(notes, analyzed):
    RememberedCode(notes).of_step(Fuse())
    [(name, note)] = notes.every("code")
    notes.keep("code", name, {step: {"digest": 1} for step in note})
    RememberedCode(notes).of_step(Fuse())
    assert len(analyzed) == 2
