"""What counts of the code of a step: messages do not, nor what only they reach; what can shape an output does."""

import sys

import pytest

from engine.builder.code import digests as code
from engine.errors import StepError

STEP = """
from pathlib import Path
from typing import ClassVar
from reached_pkg import tool
from engine.step import Step

class Mark(Step):
    makes: ClassVar[str] = "marked"
    level: int = 1

    @classmethod
    def for_recipe(cls, recipe):
        return cls(level=len("recipe"))

    def judge(self, report):
        self._bound(report)

    def _bound(self, report):
        assert report < 5

    def hardware(self):
        return None

    def run(self, out: Path) -> None:
        tool.work(out, self.level)

class Unused:
    value = 1
"""
TOOL = '''
import logging
import sys
import warnings
from reached_pkg import words, other

LOG = logging.getLogger("x")
LIMIT = 8
TABLE = {"a": 1}

class TroubleError(Exception):
    """Trouble."""

class MoreTroubleError(TroubleError):
    """More trouble."""

def unused(x):
    return x + 1

def _listed(names):
    shown = [str(each) for each in names]
    shown.append("end")
    return ", ".join(shown[:LIMIT])

def _error(what, facts=()):
    facts = [f"fact {each}" for each in facts]
    if facts:
        return TroubleError(f"{what}: {facts}")
    return MoreTroubleError(what)

def work(out, level):
    print("at work", _listed([1, 2]))
    print("at last", file=sys.stderr)
    LOG.debug("at work")
    if level > 3:
        raise TroubleError(f"too much: {_listed([level])}")
    if level < 0:
        raise _error("too little", [level])
    out.write_text(words.spelled(level))
    return TABLE
'''
WORDS = '''
def spelled(level):
    """Docs."""
    return "x" * level

def shown(level):
    return f"level {level}"
'''
OTHER = '''
shapes_output = False
"""Only for the log."""

def described(level):
    return f"level {level}"
'''
PLAIN = {"__init__.py": "", "step.py": STEP, "tool.py": TOOL, "words.py": WORDS, "other.py": OTHER}

_PLAIN_DIGEST = []
"""The digest of the step without edits, once it is known: it is the same in every test."""


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """Return the digest of the step of a package with these edits of its files: file, old text, new text."""
    tried = []

    def digest(*edits):
        if not edits and _PLAIN_DIGEST:
            return _PLAIN_DIGEST[0]
        folder = tmp_path / f"turn-{len(tried)}"
        tried.append(folder)
        monkeypatch.setattr(sys, "path", [str(folder), *(entry for entry in sys.path if "/turn-" not in entry)])
        files = dict(PLAIN)
        for file, old, new in edits:
            assert old in files[f"{file}.py"], old
            files[f"{file}.py"] = files[f"{file}.py"].replace(old, new)
        for name, text in files.items():
            (folder / "reached_pkg").mkdir(parents=True, exist_ok=True)
            (folder / "reached_pkg" / name).write_text(text)
        for name in [name for name in sys.modules if name.startswith("reached_pkg")]:
            del sys.modules[name]
        code.forget()
        from reached_pkg.step import Mark

        result = code.of_step(Mark()).digest
        if not edits:
            _PLAIN_DIGEST.append(result)
        return result

    yield digest
    code.forget()
    for name in [name for name in sys.modules if name.startswith("reached_pkg")]:
        del sys.modules[name]


OUTSIDE = {
    "the text of print": ("tool", '"at work"', '"busy"'),
    "another argument of print": ("tool", "_listed([1, 2])", "LIMIT"),
    "a print less": ("tool", '    print("at work", _listed([1, 2]))\n', ""),
    "a print more": ("tool", "    return TABLE", '    print("done")\n    return TABLE'),
    "a print to the standard error": ("tool", "    return TABLE", "    print(1, file=sys.stderr)\n    return TABLE"),
    "a function that only messages call": ("tool", 'append("end")', 'append("fin")'),
    "a constant that only messages read": ("tool", "LIMIT = 8", "LIMIT = 9"),
    "the text of an error": ("tool", "too much", "much too much"),
    "a function that makes errors": ("tool", "fact {each}", "the fact {each}"),
    "the arguments of a function that makes errors": ("tool", '"too little", [level]', '"less", [level, 1]'),
    "the cause of an error": ("tool", '_listed([level])}")', '_listed([level])}") from None'),
    "a function that nobody calls": ("tool", "return x + 1", "return x + 2"),
    "a class that nobody uses": ("step", "    value = 1", "    value = 2"),
    "a new function": ("words", "def shown", "def new():\n    return 1\n\ndef shown"),
    "a function of another module that nobody calls": ("words", '"level {level}"', '"a level {level}"'),
    "the hook that reads the recipe": ("step", 'len("recipe")', 'len("recipes")'),
    "the judge": ("step", "self._bound(report)", "self._bound(report + 1)"),
    "a method that only the judge calls": ("step", "report < 5", "report < 6"),
    "the hardware": ("step", "return None", "return 1 or None"),
    "a time limit": ("step", "    level: int = 1", "    time_limit: ClassVar[float] = 5\n    level: int = 1"),
    "code that is declared to shape no output": ("other", "level {level}", "the level {level}"),
    "a constant in a module that shapes no output": ("other", "def described", "MORE = 1\n\ndef described"),
    "a message to the log": ("tool", "    return TABLE", '    LOG.info("done %s", level)\n    return TABLE'),
    "a message of logging": ("tool", "    return TABLE", '    logging.info("done %s", level)\n    return TABLE'),
    "a variable that only a message reads": (
        "tool", '    print("at work", _listed([1, 2]))', '    done = sorted([2, 1])\n    print("at work", done)'),
    "a call of code that shapes no output": ("tool", "    return TABLE", "    other.described(5)\n    return TABLE"),
    "a library that only an unused function uses": ("tool", "import logging\n",
            "import logging\nimport textwrap\ndef _short(x):\n    return textwrap.shorten(x, 9)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_only_words_a_message_does_not_count(digest_of, name):
    assert digest_of(OUTSIDE[name]) == digest_of()


COUNTS = {
    "what run calls": ("words", '"x" * level', '"y" * level'),
    "a condition of an error": ("tool", "level > 3", "level > 4"),
    "a condition of a print": ("tool", '    print("at', '    if level > 1:\n        print("at'),
    "the class of an error": ("tool", "raise TroubleError", "raise MoreTroubleError"),
    "the class above an error": ("tool", "(TroubleError)", "(TroubleError, ValueError)"),
    "the class of an error that a function makes": ("tool", "return MoreTroubleError(what)", "return KeyError(what)"),
    "a constant that run reads": ("tool", '"a": 1', '"a": 2'),
    "the default of an option": ("step", "level: int = 1", "level: int = 2"),
    "a statement in run": ("step", "tool.work(out, self.level)", "tool.work(out, self.level + 1)"),
    "a statement that runs at the import": ("words", "def spelled", "import gc\ngc.isenabled()\n\ndef spelled"),
    "a patch of another module": ("words", "def spelled", "import json\njson.reached = len\n\ndef spelled"),
    "a patch of an own module": ("other", "def described",
            "from reached_pkg import words\nwords.spelled = len\n\ndef described"),
    "a constant that nobody reads": ("words", "def spelled", "MORE = 1\n\ndef spelled"),
    "a library that nobody uses": ("words", "def spelled", "import readline\n\ndef spelled"),
    "a side effect in the arguments of print": ("tool", '"at work", ', '"at work", out.unlink(), '),
    "a side effect in the arguments of an error": ("tool", "too much: ", "too much: {TABLE.pop('a')}"),
    "a side effect in a function that words a message": ("tool", 'shown.append("end")', 'TABLE["b"] = 2'),
    "a side effect in a function that makes errors": ("tool", "    if facts:", "    TABLE.clear()\n    if facts:"),
    "a variable bound in a message": ("tool", '"at work", ', '"at work", (level := 2), '),
    "a line that is printed into a file": ("tool", '"at work", ', '"at work", file=out.open("w"), *'),
    "a hook that run calls": ("step", "tool.work(out, self.level)", "tool.work(out, self.hardware())"),
    "a decorator that may register": ("words", "def shown", "@print\ndef shown"),
    "a class whose base registers": ("words", "def shown",
            "class A:\n    def __init_subclass__(cls): ...\n\nclass B(A):\n    x = 1\n\ndef shown"),
    "an error of a library": ("tool", "raise TroubleError", "raise logging.TroubleError"),
    "whether code is declared to shape no output": ("tool", "    return TABLE",
            "    out.write_text(other.described(5))\n    return TABLE"),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTS)
def test_what_can_shape_an_output_counts(digest_of, name):
    assert digest_of(COUNTS[name]) != digest_of()


READERS = {
    "its text": "str(error)",
    "its representation": "repr(error)",
    "an attribute": "error.args[0]",
    "the error itself": "[error]",
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["tool.TroubleError", "Exception", "(ValueError, tool.TroubleError)"])
def test_the_text_of_an_error_counts_where_some_code_reads_it(digest_of, name, kind):
    work = "        tool.work(out, self.level)"
    lines = f"        try:\n    {work}\n        except {kind} as error:\n            out.write_text({READERS[name]})"
    reader = ("step", work, lines)
    plain = digest_of(reader)
    assert digest_of(reader, OUTSIDE["the text of an error"]) != plain
    assert digest_of(reader, OUTSIDE["a function that makes errors"]) != plain
    assert digest_of(reader, OUTSIDE["a function that only messages call"]) != plain
    assert digest_of(reader, OUTSIDE["a function that nobody calls"]) == plain


@pytest.mark.parametrize(
    "handler",
    [
        "except ValueError as error:\n            out.write_text(str(error))",
        "except tool.MoreTroubleError as error:\n            out.write_text(str(error))",
        "except tool.TroubleError:\n            out.write_text('')",
        "except tool.TroubleError as error:\n            raise",
        "except tool.TroubleError as error:\n            raise error",
        "except tool.TroubleError as error:\n            raise RuntimeError(str(error)) from error",
        "except tool.TroubleError as error:\n            print(error)",
    ],
)
def test_the_text_of_an_error_does_not_count_where_no_code_reads_it(digest_of, handler):
    lines = f"        try:\n            tool.work(out, self.level)\n        {handler}"
    reader = ("step", "        tool.work(out, self.level)", lines)
    assert digest_of(reader, OUTSIDE["the text of an error"]) == digest_of(reader)


@pytest.mark.parametrize(
    "reader",
    [
        "import traceback\n        out.write_text(traceback.format_exc())",
        "import sys\n        out.write_text(str(sys.exc_info()))",
        "future = object()\n        out.write_text(str(future.exception()))",
    ],
)
def test_the_text_of_an_error_counts_where_code_reads_it_without_a_name(digest_of, reader):
    edit = ("step", "        tool.work(out, self.level)", f"        tool.work(out, self.level)\n        {reader}")
    assert digest_of(edit, OUTSIDE["the text of an error"]) != digest_of(edit)


def test_the_text_of_an_error_counts_where_a_context_manager_reads_it(digest_of):
    lines = "    def __enter__(self): ...\n    def __exit__(self, kind, value, trace):\n        return str(value)\n"
    manager = ("words", "def shown", f"class Kept:\n{lines}\ndef shown")
    used = ("tool", "    return TABLE", "    with words.Kept():\n        return TABLE")
    assert digest_of(manager, used, OUTSIDE["the text of an error"]) != digest_of(manager, used)


@pytest.mark.parametrize(
    "reader",
    [
        "import contextlib, io\n        with contextlib.redirect_stdout(io.StringIO()):\n            pass",
        "import sys\n        sys.stdout = out.open('w')",
        "import os\n        os.dup2(5, 1)",
    ],
)
def test_what_is_printed_counts_where_code_may_read_it(digest_of, reader):
    edit = ("step", "        tool.work(out, self.level)", f"        tool.work(out, self.level)\n        {reader}")
    assert digest_of(edit, OUTSIDE["the text of print"]) != digest_of(edit)
    assert digest_of(edit, OUTSIDE["the text of an error"]) == digest_of(edit)


def test_what_a_module_prints_that_can_run_as_a_program_counts(digest_of):
    program = ("tool", "def unused", "if __name__ == '__main__':\n    work(None, 1)\n\ndef unused")
    assert digest_of(program, OUTSIDE["the text of print"]) != digest_of(program)


def test_the_category_of_a_warning_counts_and_its_text_does_not(digest_of):
    warned = 'warnings.warn("old", {}, stacklevel=2)\n    return TABLE'
    edits = [("tool", "return TABLE", warned.format(kind)) for kind in ("UserWarning", "FutureWarning")]
    reworded = ("tool", "return TABLE", warned.format("UserWarning").replace("old", "outdated"))
    assert digest_of(reworded) == digest_of(edits[0])
    assert digest_of(edits[1]) != digest_of(edits[0])


@pytest.mark.parametrize(
    "dynamic",
    [
        "def pick(name):\n    return globals()[name]\n",
        "def __getattr__(name):\n    return 1\n",
        "import sys\ndef pick(name):\n    return getattr(sys.modules[__name__], name)\n",
        "def pick(text):\n    return eval(text)\n",
        "from json import *\n",
    ],
)
def test_a_module_whose_names_can_be_computed_counts_whole(digest_of, dynamic):
    edit = ("words", "def shown", f"{dynamic}\ndef shown")
    assert digest_of(edit, OUTSIDE["a function of another module that nobody calls"]) != digest_of(edit)


@pytest.mark.parametrize("use", ["getattr(words, 'sh' + 'own')", "TABLE | {1: words}", "vars(words)", "len([words])"])
def test_a_module_that_is_used_as_a_value_counts_whole(digest_of, use):
    edit = ("tool", "    return TABLE", f"    return {use}")
    assert digest_of(edit, OUTSIDE["a function of another module that nobody calls"]) != digest_of(edit)


def test_classes_count_where_code_looks_for_subclasses(digest_of):
    edit = ("step", "tool.work(out, self.level)", "tool.work(out, len(tool.TroubleError.__subclasses__()))")
    unused = ("words", "def shown", "class Unused(Exception):\n    x = 1\n\ndef shown")
    assert digest_of(edit, unused) != digest_of(edit)


def test_a_private_method_counts_where_methods_are_used_by_computed_names(digest_of):
    edit = ("step", "tool.work(out, self.level)", "tool.work(out, getattr(self, '_bo' + 'und'))")
    assert digest_of(edit, OUTSIDE["a method that only the judge calls"]) != digest_of(edit)


def test_an_iterator_that_a_message_consumes_counts(digest_of):
    lines = "    rows = iter([level])\n    print({})\n    out.write_text(str(list(rows)))\n    return TABLE"
    edits = [("tool", "    return TABLE", lines.format(text)) for text in ("'a'", "'b'", "list(rows)", "next(rows)")]
    digests = [digest_of(edit) for edit in edits]
    assert digests[0] == digests[1]
    assert len(set(digests[1:])) == 3


def test_a_value_that_is_only_tried_counts(digest_of):
    lines = "    try:\n        known = TABLE[{}]\n    except KeyError:\n        level = 0\n    return level"
    one, other = (("tool", "    return TABLE", lines.format(key)) for key in ("'a'", "'b'"))
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize("value", ["1", "len('')", "None"])
def test_a_declaration_that_must_be_computed_is_an_error(digest_of, value):
    with pytest.raises(StepError, match="declares `shapes_output` with a value that must be computed"):
        digest_of(("other", "shapes_output = False", f"shapes_output = {value}"))


@pytest.mark.parametrize(
    "line",
    [
        "open('x', 'w')",
        "level.write_text('x')",
        "import os; os.remove('x')",
        "level.strict = True",
        "level['strict'] = True",
        "import shutil; shutil.rmtree('x')",
    ],
)
def test_code_that_is_declared_to_shape_no_output_must_not_write(digest_of, line):
    with pytest.raises(StepError, match="declares that it shapes no output, but it changes something"):
        digest_of(("other", "    return f", f"    {line}\n    return f"))


def test_an_option_called_like_the_declaration_declares_nothing(digest_of):
    edit = ("step", "    level: int = 1", "    shapes_output: bool = False\n    level: int = 1")
    assert digest_of(edit, COUNTS["a statement in run"]) != digest_of(edit)


def test_a_report_that_is_judged_always_counts(digest_of):
    report = "class Result:\n    shapes_output = False\n    def __init__(self, value): ...\n\nclass Mark"
    edits = [("step", "class Mark", report), ("step", "tool.work(out, self.level)", "return Result(1)")]
    changed = ("step", "return Result(1)", "return Result(2)")
    assert digest_of(*edits, changed) == digest_of(*edits)  # its result is a description
    makes = '    makes: ClassVar[str] = "marked"'
    declared = ("step", makes, f"{makes}\n    report: ClassVar = Result")
    with pytest.raises(StepError, match="is judged or shown as a result"):
        digest_of(*edits, declared)


def test_all_files_that_were_read_are_watched(digest_of):
    digest_of(COUNTS["what run calls"])
    from reached_pkg.step import Mark

    names = {path.name for path in code.of_step(Mark()).files}
    assert {"step.py", "tool.py", "words.py", "other.py"} <= names
    assert {path.name for path in code.of_step(Mark()).before} >= {"step.py", "tool.py", "words.py", "other.py"}
