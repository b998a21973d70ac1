"""The normal form of a module: what it leaves out, what it tells apart, and which imports it names."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import engine
from engine.builder.code import normal_form
from engine.builder.code.normal_form import Import

ENGINE = Path(engine.__file__).parent
MODULE = '''
"""Docs."""
import os

def work(x, *, y=(1, 2)):
    """More docs."""
    # a remark
    return {"a": x, **os.environ} if x > 1 else [y]

LEVEL = 1
"""How much."""
'''


def form(text, package="pack.room"):
    return normal_form.of(ast.parse(text), package)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Docs."""\n', ""),
        ('    """More docs."""\n', '    """Other docs."""\n'),
        ('    """More docs."""\n', ""),
        ('"""How much."""', '"""How very much."""'),
        ("    # a remark\n", ""),
        ("import os\n", "import os\n\n\n\n"),
        ("import os", "import os;"),
        ('{"a": x,', "{'a': (x),"),
        ("y=(1, 2)", "y=(\n    1,\n    2,\n)"),
        ("LEVEL = 1", "LEVEL = 0x1"),
        ("\n", "\r\n"),
    ],
)
def test_docstrings_comments_and_formatting_are_no_part_of_it(old, new):
    assert old in MODULE
    assert form(MODULE.replace(old, new)).text == form(MODULE).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import os", "import os as os2"),
        ("x > 1", "x >= 1"),
        ("x > 1", "x > True"),
        ("x > 1", "x > 1.0"),
        ('"a"', '"A"'),
        ('"a"', "b'a'"),
        ('"a": x', '"a": a'),
        ("(1, 2)", "(2, 1)"),
        ("(1, 2)", "[1, 2]"),
        ("(1, 2)", "(12,)"),
        ("(1, 2)", "(-1, 2)"),
        ("*, y=", "y="),
        ("**os.environ", "**{}"),
        ("**os.environ", "'os': os.environ"),
        ("def work", "async def work"),
        ("    return", "    x = (y := x)\n    return"),
        ("    # a remark\n", "    'a'.upper()\n"),
        ("LEVEL = 1", "LEVEL: int = 1"),
        ("LEVEL = 1", 'LEVEL = "LEVEL"'),
        ("LEVEL = 1", "LEVEL = work"),
        ("LEVEL = 1", "LEVEL = f'{1}'"),
        ("LEVEL = 1", "LEVEL = f'{1!r}'"),
        ("LEVEL = 1", "LEVEL = 10 ** 5000"),
    ],
)
def test_every_other_edit_is_another_form(old, new):
    assert old in MODULE
    assert form(MODULE.replace(old, new)).text != form(MODULE).text


def files():
    paths = sorted((ENGINE / "recipe").rglob("*.py"))
    assert len(paths) > 20
    return paths


def test_a_file_that_python_writes_anew_from_its_syntax_tree_has_the_same_form():
    """So neither comments, quotes and brackets nor line ends and blank lines are any part of it."""
    for path in files():
        text = path.read_text("utf-8")
        assert form(ast.unparse(ast.parse(text))).text == form(text).text, path


_PLACED = {"ctx", "kind", "type_comment", "type_ignores"}
"""Fields of nodes that Python ignores, or that follow from the place of the node."""


def nodes(node):
    """Yield a node and the nodes in it, except docstrings."""
    if not is_text(node):
        yield node
        for each in ast.iter_child_nodes(node):
            yield from nodes(each)


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def other(value):
    """Return another value of the same type for a field of a node; None for a node with fields of its own."""
    new = None
    match value:
        case ast.expr():
            new = ast.Name("another")
        case ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop():
            new = next(kind for kind in type(value).__base__.__subclasses__() if kind is not type(value))()
        case bool():
            new = not value
        case int() | float():
            new = value + 1
        case str():
            new = f"{value}_"
        case bytes():
            new = value + b"_"
        case [*_, last] if not is_text(last):
            new = value[:-1]
    return new


def test_another_value_in_any_field_of_any_kind_of_node_is_another_form():
    tried = Counter()
    for path in files():
        for statement in ast.parse(path.read_text("utf-8")).body:
            tree = ast.Module([statement], [])
            before = normal_form.of(tree, "pack").text
            for node in nodes(statement):
                for field, value in ast.iter_fields(node):
                    new, place = other(value), (type(node).__name__, field)
                    if new is None or field in _PLACED or tried[place] == 3:
                        continue
                    tried[place] += 1
                    setattr(node, field, new)
                    assert normal_form.of(tree, "pack").text != before, (path, place)
                    setattr(node, field, value)
    assert len(tried) > 90


def test_a_number_of_thousands_of_digits_has_a_form():
    assert form(f"x = 0x1{'0' * 5000}").text != form(f"x = 0x2{'0' * 5000}").text


def test_imports_at_any_depth_are_named_and_those_for_type_checking_apart():
    text = """
import a.b as c
from . import here
from ..other import thing, thing as again
if typing.TYPE_CHECKING:
    from never import runs
else:
    import otherwise
def f():
    try:
        from deep import one
    except ImportError:
        import_module("by.name"), importlib.import_module(computed), __import__("built")
"""
    assert form(text).imports == (
        Import("a.b"), Import("pack.room", "here"), Import("pack.other", "thing"), Import("otherwise"),
        Import("deep", "one"), Import("by.name"), Import("built"),
    )  # fmt: skip
    assert form(text).typing_imports == (Import("never", "runs"),)
