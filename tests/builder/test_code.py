"""Which edits of a step's code count."""

import importlib.machinery
import sys

import pytest

from engine.builder import code

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


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "helper_pkg"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "step.py").write_text(STEP)
    (root / "tool.py").write_text("NAME = 'words.txt'\ndef work(x):\n    return x\n")
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
    ("said", "file"),
    [("'data/words.txt'", "data/words.txt"), ("'data'", "data/words.txt"), ("'data'", "data/deeper/words.bin")],
)
def test_data_in_a_folder_counts_where_it_is_named(package, said, file):
    (package / "data" / "deeper").mkdir(parents=True)
    for name in ("data/words.txt", "data/deeper/words.bin"):
        (package / name).write_text("some words")
    (package / "tool.py").write_text(f"PLACE = {said}\ndef work(x):\n    return x\n")
    before = digest()
    (package / file).write_text("other words")
    assert digest() != before


def test_data_of_the_package_around_a_module_counts(package):
    (package / "inner").mkdir()
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "tool.py").write_text("NAME = 'words.txt'\ndef work(x):\n    return x\n")
    (package / "step.py").write_text(STEP.replace("helper_pkg import", "helper_pkg.inner import"))
    before = digest()
    (package / "words.txt").write_text("other words")
    assert digest() != before


def test_python_files_in_a_folder_that_is_named_are_code_and_not_data(package):
    (package / "plugins").mkdir()
    (package / "plugins" / "one.py").write_text("A = 1\n")
    (package / "tool.py").write_text("PLACE = 'plugins'\ndef work(x):\n    return x\n")
    before = digest()
    (package / "plugins" / "one.py").write_text("A = 1  # a remark\n")
    assert digest() == before


def test_a_folder_in_which_data_may_appear_is_watched(package):
    code.forget()
    assert package in code.of_module("helper_pkg.step").files


def test_every_step_of_ours_has_a_digest_of_its_own():
    from engine.builder import registry

    digests = {code.of_module(step.__module__).digest for step in registry.steps().values()}
    assert len(digests) == len(registry.steps())
