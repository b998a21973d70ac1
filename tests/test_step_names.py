"""The loop, the reports and the commands contain no names of steps: they read the fields of steps."""

import ast
from pathlib import Path

import pytest

from engine.builder import registry
from engine.commands import COMMANDS

ENGINE = Path(__file__).parent.parent / "engine"
ROOMS = ("builder", "client", "commands", "lockfile", "machine", "report", "server", "store")
_USERS_WORDS = ENGINE / "commands" / "hints.py"
"""The words that users type for commands; some are names of steps, too."""
PLACES = sorted(
    path
    for path in (*ENGINE.glob("*.py"), *(path for room in ROOMS for path in (ENGINE / room).rglob("*.py")))
    if path != _USERS_WORDS
)
LOOKUPS = {"get", "pop", "report", "index", "setdefault"}


def named(tree, names):
    """Return the lines on which a step's name is compared with, matched, looked up, or listed."""
    lines = []

    def note(*nodes):
        lines.extend(node.lineno for node in nodes if isinstance(node, ast.Constant) and node.value in names)

    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                note(node.left, *node.comparators)
            case ast.MatchValue():
                note(node.value)
            case ast.Subscript():
                note(node.slice)
            case ast.Dict():
                note(*filter(None, node.keys))
            case ast.Tuple() | ast.List() | ast.Set():
                note(*node.elts)
            case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in LOOKUPS:
                note(*node.args[:1])
    return lines


def test_no_step_is_known_by_name():
    assert len(PLACES) > 100
    steps = registry.steps().keys()
    lines = {}
    for path in PLACES:
        # `recipe package` is a command, and `package` is a step.
        names = steps - {*COMMANDS} if path.parent.name == "commands" or path.name == "cli.py" else steps
        lines[str(path.relative_to(ENGINE))] = named(ast.parse(path.read_text("utf-8")), names)
    assert {path: each for path, each in lines.items() if each} == {}, "ask the step's fields instead"


@pytest.mark.parametrize(
    "planted",
    [
        'if job.name == "fetch": pass',
        'if "fetch" == job.name: pass',
        'if name in ("other", "trt-build"): pass',
        'ORDER = ["validate", "other"]',
        'place = records["package"]',
        'record = records.get("shape-infer")',
        'PLACES = {"bench": 1}',
        'match name:\n    case "export" | "other": pass',
    ],
)
def test_a_planted_name_is_found(planted):
    assert named(ast.parse(planted), registry.steps().keys())


def test_words_in_messages_and_fields_of_recipes_are_no_look_up():
    text = 'raise loaded.error("say it", "bench", "via", hint="--force bench")'
    assert not named(ast.parse(text), registry.steps().keys())
