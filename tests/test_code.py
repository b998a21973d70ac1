"""Which edits of a step's code count."""

import sys

import pytest

from engine import code

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
    code.of_module.cache_clear()
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


def test_a_string_statement_that_is_no_docstring_counts(package):
    before = digest()
    (package / "step.py").write_text(STEP.replace("return tool.work(1)", "return tool.work('1')"))
    assert digest() != before


def test_every_step_of_ours_has_a_digest_of_its_own():
    from engine import registry

    digests = {code.of_module(step.__module__).digest for step in registry.steps().values()}
    assert len(digests) == len(registry.steps())
