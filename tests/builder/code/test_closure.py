"""The import closure of a step: which modules and files it has, and which changes give it another digest."""

import importlib.machinery
import sys
from pathlib import Path

import pytest

from engine.builder.code import closure
from engine.builder.code.closure import WORKER
from engine.errors import StepError
from engine.step import Step

FILES = {
    "__init__.py": "",
    "step.py": "from pack import tool\nclass A:\n    def run(self):\n        from pack.late import Thing\n",
    "tool.py": "data = ('words.txt',)\ndef work(x):\n    return x\n",
    "words.txt": "some words",
    "late/__init__.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.late.things import Thing\n"
        "def __getattr__(name): ...\n"
    ),
    "late/things.py": "class Thing: ...\n",
    "other.py": "UNUSED = 1\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package `pack` with a step."""
    root = tmp_path / "pack"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [name for name in sys.modules if name.partition(".")[0] == "pack"]:
        del sys.modules[name]
    closure.forget()


def code(*roots):
    closure.forget()
    return closure.of("A", roots or ("pack.step",))


def test_the_closure_has_each_module_on_the_way_and_those_that_a_package_imports_late(package):
    assert code().modules == {"pack", "pack.step", "pack.tool", "pack.late", "pack.late.things"}
    assert set(code().before) == {package / name for name in FILES if name != "other.py"}


@pytest.mark.parametrize("name", [name for name in FILES if name != "other.py"])
def test_a_change_of_any_file_of_the_closure_counts(package, name):
    before = code().digest
    (package / name).write_text(FILES[name] + "MORE = 1\n")
    assert code().digest != before


@pytest.mark.parametrize(
    "statement",
    [
        "import pack.other",
        "from pack import other",
        "from . import other",
        "from .other import UNUSED",
        "from pack.other import *",
        "def f():\n    if f:\n        import pack.other",
        "importlib.import_module('pack.other')",
        "try:\n    import pack.missing\nexcept ImportError:\n    from pack import other",
    ],
)
def test_an_import_at_any_depth_reaches_a_module(package, statement):
    (package / "tool.py").write_text(f"{statement}\n")
    before = code().digest
    assert "pack.other" in code().modules
    (package / "other.py").write_text("UNUSED = 2\n")
    assert code().digest != before


def test_a_module_that_nothing_or_only_a_type_checker_imports_does_not_count(package):
    (package / "tool.py").write_text("if TYPE_CHECKING:\n    from pack import other\n")
    assert "pack.other" not in code().modules
    before = code().digest
    (package / "other.py").write_text("UNUSED = 2\n")
    assert code().digest == before


def test_a_module_that_a_step_names_is_reached_and_a_missing_one_counts_when_it_comes(package):
    before = code("pack.step", "pack.new").digest
    assert before != code().digest
    (package / "new.py").write_text("")
    assert code("pack.step", "pack.new").digest != before


def test_a_module_that_is_compiled_or_broken_or_too_deep_counts_by_its_bytes(package):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (package / "tool.py").unlink()
    deep = f"x = {' + '.join(['1'] * 3000)}".encode()
    for name, one, other in (
        (f"tool{suffix}", b"one (", b"two ("),
        ("late/things.py", b"one (", b"two ("),
        ("late/things.py", deep, deep + b" + 2"),
    ):
        (package / name).write_bytes(one)
        before = code().digest
        (package / name).write_bytes(other)
        assert code().digest != before, name


def test_modules_of_other_packages_are_tools_and_not_read(package):
    (package / "tool.py").write_text("import json, numpy.linalg\nfrom pytest import mark\n")
    assert code().modules == {"pack", "pack.step", "pack.tool", "pack.late", "pack.late.things"}


@pytest.mark.parametrize(
    ("says", "file"),
    [
        ("data = ('data/words.txt',)", "data/words.txt"),
        ("data: tuple[str, ...] = ('data',)", "data/deeper/words.bin"),
        ("data = ('data',)", "data/deeper/code.py"),
        ("class A:\n    data: ClassVar[tuple[str, ...]] = ('data/words.txt',)", "data/words.txt"),
        ("class A:\n    class B:\n        data = ('../pack/words.txt',)", "words.txt"),
    ],
)
def test_declared_data_counts(package, says, file):
    (package / "data" / "deeper").mkdir(parents=True)
    for name in ("data/words.txt", "data/deeper/words.bin", "data/deeper/code.py"):
        (package / name).write_text("some = 'words'")
    (package / "tool.py").write_text(f"{says}\n")
    before = code().digest
    assert package / file in code().before
    (package / file).write_text("other = 'words'")
    assert code().digest != before


def test_a_new_file_in_a_declared_folder_counts_and_the_folder_is_watched(package):
    (package / "data").mkdir()
    (package / "tool.py").write_text("data = ('data',)\n")
    before = code().digest
    assert package / "data" in code().before
    (package / "data" / "new.txt").write_text("")
    assert code().digest != before


@pytest.mark.parametrize(
    "says", ["name = 'words.txt'", "class A:\n    data: str = 'words.txt'", "def f(data='a'): ..."]
)
def test_a_file_that_is_only_mentioned_does_not_count(package, says):
    (package / "tool.py").write_text(f"{says}\n")
    before = code().digest
    (package / "words.txt").write_text("other words")
    assert code().digest == before


def test_data_that_is_not_there_or_is_declared_in_words_that_must_be_run_is_an_error(package):
    (package / "words.txt").unlink()
    with pytest.raises(StepError, match=r"tool\.py declares the data 'words\.txt', and it is not there"):
        code()
    (package / "tool.py").write_text("MORE = 'a'\ndata = ('words.txt', MORE)\n")
    with pytest.raises(StepError, match="is not written as literal texts") as caught:
        code()
    assert caught.value.facts == ("line 2: ('words.txt', MORE)",)


@pytest.mark.parametrize("name", ["tool.py", "words.txt", "tool/__init__.py"])
def test_a_process_that_lives_on_forgets_modules_that_have_changed(package, name):
    first = code()
    closure.forget_changed()
    assert closure.of("A", ("pack.step",)) is first
    (package / name).parent.mkdir(exist_ok=True)
    (package / name).write_text("data = ()\nMORE = 2\n")
    closure.forget_changed()
    assert closure.of("A", ("pack.step",)).digest != first.digest


class Work(Step):
    """What a worker runs."""

    makes = "work"

    def run(self, out):
        """Do nothing."""


class Planned(Work):
    """A step whose planning lies apart."""

    work = Work


class Derived(Planned):
    """A step of somebody else, who extends the planned one."""


def test_the_class_that_a_worker_runs_is_named_by_the_step_itself_and_not_inherited():
    assert (Work.work_class(), Planned.work_class(), Derived.work_class()) == (Work, Work, Derived)
    digests = {kind: closure.of_step(kind()).digest for kind in (Work, Planned, Derived)}
    assert digests[Work] == digests[Planned] != digests[Derived]


def test_the_modules_of_the_worker_count_for_every_step():
    worker = closure.closure((WORKER,))
    assert {"engine.builder.worker", "engine.builder.trace.recorder", "engine.store.output"} <= worker
    assert worker <= closure.of_step(Work()).modules


def test_the_worker_reaches_no_recipe_no_runtime_and_no_step():
    above = ("engine.recipe.", "engine.runtimes.", "engine.steps.", "engine.kit.", "engine.tasks.", "engine.api")
    assert [name for name in closure.closure((WORKER,)) if name.startswith(above)] == []


def test_every_step_of_ours_has_a_code_of_its_own():
    from engine.builder import registry

    digests = {closure.of(kind.__qualname__, (kind.__module__,)).digest for kind in registry.steps().values()}
    assert len(digests) == len(registry.steps()) > 10


def test_no_module_of_the_code_row_is_large():
    """The mechanism stays one that a newcomer can read: the code row and its closure have at most 540 lines."""
    room = Path(closure.__file__).parent
    lines = [len(path.read_text("utf-8").splitlines()) for path in room.glob("*.py")]
    assert len(lines) >= 3
    assert sum(lines) <= 540
