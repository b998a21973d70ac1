"""What messages tell a user to type exists: the commands with their options, and the fields of a recipe."""

import argparse
import ast
import functools
import re
import shlex
from pathlib import Path

import pytest

from engine import commands
from engine.commands import hints
from engine.errors import UsageError
from engine.recipe import outline

ROOT = Path(__file__).parent.parent
_COMMAND = re.compile(rf"\brecipe ((?:{'|'.join(commands.COMMANDS)})\b(?: (?:verify|gc|[A-Z]+|\S+\.yaml|--?[a-z-]+))*)")
_FIELD = re.compile(
    r"(?<![\w./-])((?:validate|bench|calibrate|target|package|model|profiles)(?:\.[a-z_]+)+)(?![\w(./])"
)
_BEGINNING = re.compile(r"\brecipe [a-z]|\b(?:validate|bench|calibrate|target|package|model|profiles)\.")
_FILES = re.compile(r"\.(bin|data|json|onnx|plan|py|safetensors|xml)$")
"""The ends of file names that look like a field, such as model.onnx."""
_OF_ONNX = frozenset({"model.ir_version"})


@functools.cache
def messages():
    """Return the texts of the program that are no docstrings; `1` stands for a value.

    A module without a word that begins a hint is not parsed.
    """
    texts = []
    for path in sorted((ROOT / "engine").rglob("*.py")):
        source = path.read_text()
        if not _BEGINNING.search(source):
            continue
        docstrings = set()
        for node in ast.walk(ast.parse(source)):  # an expression comes before its value
            if isinstance(node, ast.Expr):
                docstrings.add(id(node.value))
            elif id(node) in docstrings:
                continue
            elif isinstance(node, ast.JoinedStr):
                texts.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return texts


def test_a_command_in_a_message_is_a_command():
    every = {words.strip() for text in messages() for words in _COMMAND.findall(text)}
    assert len(every) > 15
    wrong = []
    for words in sorted(every):
        line = [word for word in words.split() if word != "--help"]
        if all(word.startswith("-") or word == "STEP" for word in line[1:]):
            line += {"cache": ["verify"], "query": ["URL"], "doctor": [], "steps": []}.get(line[0], ["x.yaml"])
        wrong += [(words, error.what) for error in errors_of(line)]
    assert wrong == []


def test_a_command_line_in_backticks_can_be_typed():
    """Whole ones: a command without an argument is the command's name."""
    spans = {words for text in messages() for words in re.findall(r"`recipe ([^`]+)`", text)}
    whole = sorted(words for words in spans if " " in words and not words.endswith("--help"))
    assert len(whole) > 25
    for words in whole:
        faults = [error.what for error in errors_of(shlex.split(words))]
        assert all("arguments are required" in fault for fault in faults), words  # for example `recipe lock --refresh`


def errors_of(line):
    """Return the error of a command line, or none."""
    try:
        commands.parse(line)
    except UsageError as error:
        return [error]
    return []


def innermost(parser, words):
    """Yield the words of each command and each action of a command, with its parser."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for action in inner:
        for name, each in action.choices.items():
            yield from innermost(each, [*words, name])


def options_of(parser):
    return {option for action in parser._actions for option in action.option_strings}


PARSERS = list(innermost(commands._parser([])[0], []))
SLIPS = ["quantize", "precision=int8", "--zzz", *hints._OPTIONS, *hints._FIELDS, *hints._ELSEWHERE]


@pytest.mark.parametrize(("words", "parser"), [pytest.param(*each, id=" ".join(each[0])) for each in PARSERS])
def test_a_hint_names_options_of_its_own_command_or_a_whole_command_line(words, parser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hints = 0
    for slip in SLIPS:
        needed = ["RECIPE.yaml"] * any(action.metavar == "RECIPE" for action in parser._actions)
        hint = next((error.hint for error in errors_of([*words, *needed, slip])), None)
        if hint is None:
            continue
        hints += 1
        for span in re.findall(r"`recipe ([^`]+)`", hint):
            if " " in span:
                commands.parse(shlex.split(span))
        own = re.sub(r"`recipe [^`]+`", "", hint).replace(f"recipe {' '.join(words)} --help", "")
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", own)) <= options_of(parser), f"{words} {slip}: {hint}"
    assert hints > 20


def test_a_field_in_a_message_is_a_field_of_a_recipe():
    every = {field for text in messages() for field in _FIELD.findall(text)} - _OF_ONNX
    fields = sorted(field for field in every if not _FILES.search(field))
    assert len(fields) > 15
    assert [field for field in fields if not outline.is_known(field.split("."))] == []
