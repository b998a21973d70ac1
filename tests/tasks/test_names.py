"""Nobody outside `engine/tasks` knows a task by its name: none is compared, matched, or a key, or a value at all."""

import ast
import re
from pathlib import Path

import pytest

from engine import tasks

ENGINE = Path(tasks.__file__).parents[1]
_EXAMPLES = ENGINE / "recipe" / "descriptions.py"
"""It has an example for each field of a recipe, `model.task` among them."""
OUTSIDE = sorted(
    path for path in ENGINE.rglob("*.py") if not path.is_relative_to(ENGINE / "tasks") and path != _EXAMPLES
)


def named(source: str) -> list[str]:
    """Return each place of a source where a task's name stands as a value, or in a text that is no docstring."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [
        f"line {node.lineno}: {name}"
        for node in texts
        for name in tasks.names()
        if id(node) not in prose and re.search(rf"(?<![\w-]){name}(?![\w-])", node.value)
    ]


def words(source: str) -> list[str]:
    return [place.partition(": ")[2] for place in named(source)]


def test_no_module_outside_names_a_task():
    assert len(OUTSIDE) > 100
    places = {str(path.relative_to(ENGINE)): named(path.read_text("utf-8")) for path in OUTSIDE}
    assert {path: each for path, each in places.items() if each} == {}, "ask engine/tasks for what differs by task"


@pytest.mark.parametrize(
    "planted",
    [
        "if task == 'fill-mask': pass",
        "if 'fill-mask' != task: pass",
        "pairs = task in ('fill-mask', 'other')",
        "PAIRS = 'fill-mask'",
        "WAYS = {'fill-mask': 1}",
        "match task:\n    case 'fill-mask': pass",
        "def run(task='fill-mask'): pass",
        "hint = f'say `task: fill-mask` instead of {task}'",
    ],
)
def test_one_that_is_planted_is_found(planted):
    assert words(planted) == ["fill-mask"]


def test_docstrings_may_speak_of_tasks():
    assert named('"""About fill-mask."""\n\ndef f():\n    """As the fill-mask pipeline does."""\n') == []


def of_modality(source: str) -> list[int]:
    """Return the lines of a source that name a modality."""
    tree = ast.walk(ast.parse(source))
    return [node.lineno for node in tree if isinstance(node, ast.Attribute) and _last(node.value) == "Modality"]


def _last(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def test_no_module_outside_names_a_modality():
    places = {str(path.relative_to(ENGINE)): of_modality(path.read_text("utf-8")) for path in OUTSIDE}
    assert {path: each for path, each in places.items() if each} == {}, "ask a property of Task, such as takes_images"


@pytest.mark.parametrize("planted", ["if task.modality is Modality.IMAGE: pass", "x = tasks.Modality.TEXT"])
def test_a_modality_that_is_planted_is_found(planted):
    assert of_modality(planted) == [1]
