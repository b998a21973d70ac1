"""Edits of a step's code that change its digest, and edits that do not."""

import importlib.machinery
import sys

import pytest

from engine.builder.code import digests as code
from engine.errors import StepError

STEP = '''
"""A step."""
from helper_pkg import tool
class A:
    """Docs."""
    def run(self):
        """More docs."""
        # a remark
        return tool.work(1)
'''

TOOL = "data = ('words.txt',)\ndef work(x):\n    return x\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "helper_pkg"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "step.py").write_text(STEP)
    (root / "tool.py").write_text(TOOL)
    (root / "words.txt").write_text("some words")
    (root / "other.py").write_text("UNUSED = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield root
    for name in [name for name in sys.modules if name.startswith("helper_pkg")]:
        del sys.modules[name]


def digest():
    code.forget()
    return code.of_module("helper_pkg.step").digest


def test_comments_docstrings_and_layout_do_not_count(package):
    before = digest()
    changed = STEP.replace("# a remark", "# another").replace("Docs.", "Other docs.").replace("    def", "\n\n    def")
    (package / "step.py").write_text(changed)
    assert digest() == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("step.py", "work(1)", "work(2)"), ("tool.py", "return x", "return x + 1"), ("words.txt", "some", "other")],
)
def test_a_changed_statement_counts_wherever_it_is_reached(package, file, old, new):
    before = digest()
    path = package / file
    path.write_text(path.read_text().replace(old, new))
    assert digest() != before


def test_a_module_that_is_not_reached_does_not_count(package):
    before = digest()
    (package / "other.py").write_text("UNUSED = 2\n")
    assert digest() == before


def test_a_string_that_is_no_docstring_counts(package):
    before = digest()
    (package / "step.py").write_text(STEP.replace("return tool.work(1)", "return tool.work('1')"))
    assert digest() != before


def test_the_docstring_of_a_field_does_not_count(package):
    (package / "step.py").write_text(STEP + '    level = 1\n    """How much."""\n')
    before = digest()
    (package / "step.py").write_text(STEP + '    level = 1\n    """How very much."""\n')
    assert digest() == before


def test_what_only_a_type_checker_imports_does_not_count(package):
    (package / "step.py").write_text(
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from helper_pkg import other\n{STEP}"
    )
    before = digest()
    (package / "other.py").write_text("UNUSED = 2\n")
    assert digest() == before


def test_what_is_imported_otherwise_than_for_type_checking_counts(package):
    (package / "step.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    from helper_pkg import other\n"
    )
    before = digest()
    (package / "other.py").write_text("UNUSED = 2\n")
    assert digest() != before


def test_the_package_that_python_runs_first_counts(package):
    before = digest()
    (package / "__init__.py").write_text("LEVEL = 2\n")
    assert digest() != before


def test_a_compiled_helper_counts(package):
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    (package / "tool.py").unlink()
    (package / f"tool{suffix}").write_bytes(b"one")
    before = digest()
    (package / f"tool{suffix}").write_bytes(b"two")
    assert digest() != before


@pytest.mark.parametrize(
    ("says", "file"),
    [
        ("data = ('words.txt',)", "words.txt"),
        ("data = ('data/words.txt',)", "data/words.txt"),
        ("data = ('data/',)", "data/words.txt"),
        ("data: tuple[str, ...] = ('data',)", "data/deeper/words.bin"),
        ("data = ('data',)", "data/deeper/code.py"),
        ("class A:\n    data: ClassVar[tuple[str, ...]] = ('data/words.txt',)", "data/words.txt"),
        ("class A:\n    class B:\n        data = ('../helper_pkg/words.txt',)", "words.txt"),
    ],
)
def test_declared_data_counts(package, says, file):
    (package / "data" / "deeper").mkdir(parents=True)
    for name in ("data/words.txt", "data/deeper/words.bin", "data/deeper/code.py"):
        (package / name).write_text("some = 'words'")
    (package / "tool.py").write_text(f"{says}\ndef work(x):\n    return x\n")
    before = digest()
    assert package / file in code.of_module("helper_pkg.step").files
    (package / file).write_text("other = 'words'")
    assert digest() != before


def test_a_new_file_in_a_declared_folder_counts_and_the_folder_is_watched(package):
    (package / "data").mkdir()
    (package / "tool.py").write_text("data = ('data',)\ndef work(x):\n    return x\n")
    before = digest()
    assert package / "data" in code.of_module("helper_pkg.step").files
    (package / "data" / "new.txt").write_text("")
    assert digest() != before


def test_the_name_of_declared_data_counts_and_its_folder_does_not(package):
    before = digest()
    (package / "deep").mkdir()
    (package / "words.txt").rename(package / "deep" / "words.txt")
    (package / "tool.py").write_text(TOOL.replace("words.txt", "deep/words.txt"))
    assert digest() == before
    (package / "deep" / "words.txt").rename(package / "deep" / "texts.txt")
    (package / "tool.py").write_text(TOOL.replace("words.txt", "deep/texts.txt"))
    assert digest() != before


@pytest.mark.parametrize(
    "says", ["name = 'words.txt'", "class A:\n    data: str = 'words.txt'", "def f(data='a'): ..."]
)
def test_a_file_that_is_only_mentioned_does_not_count(package, says):
    (package / "tool.py").write_text(f"{says}\ndef work(x):\n    return x\n")
    before = digest()
    (package / "words.txt").write_text("other words")
    assert digest() == before


def test_data_that_is_declared_and_not_there_is_an_error(package):
    (package / "words.txt").unlink()
    with pytest.raises(StepError, match=r"tool\.py declares the data 'words\.txt', and it is not there"):
        digest()


def test_data_that_is_declared_in_words_that_must_be_run_is_an_error(package):
    (package / "tool.py").write_text("MORE = 'a'\ndata = ('words.txt', MORE)\ndef work(x):\n    return x\n")
    with pytest.raises(StepError, match="is not written as literal texts") as caught:
        digest()
    assert caught.value.facts == ("line 2: ('words.txt', MORE)",)


def test_every_step_of_ours_has_a_digest_of_its_own():
    from engine.builder import registry

    digests = {code.of_module(step.__module__).digest for step in registry.steps().values()}
    assert len(digests) == len(registry.steps())
