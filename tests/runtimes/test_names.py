"""Nobody outside `engine/runtimes` compares a runtime's name, matches it, or has it as a key."""

import ast
from pathlib import Path

import pytest

import engine
from engine.runtimes import registry

ENGINE = Path(engine.__file__).parent
OUTSIDE = sorted(path for path in ENGINE.rglob("*.py") if not path.is_relative_to(ENGINE / "runtimes"))
NAMES = {name for known in registry.runtimes() for name in (known, known.replace("-", "_"))} - {"auto"}
"""`auto` is a word of others, too: of the load generator to take."""
_ASKING = ("endswith", "get", "index", "startswith")


def texts(node: ast.AST | None) -> list[str]:
    """Return the texts that an expression is, or lists."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    listed = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    return [text for each in listed for text in texts(each)]


def compared(source: str) -> list[str]:
    """Return each runtime's name that a source compares, matches, has as a key, or asks for."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                asked = [left, *others]
            case ast.Dict(keys=keys):
                asked = keys
            case ast.MatchValue(value=value):
                asked = [value]
            case ast.Subscript(slice=key):
                asked = [key]
            case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in _ASKING:
                asked = arguments
            case _:
                continue
        asked = [constants.get(each.id, each) if isinstance(each, ast.Name) else each for each in asked]
        found += [text for each in asked for text in texts(each) if text in NAMES]
    return found


def test_there_are_modules_and_names_to_look_at():
    assert len(OUTSIDE) > 100
    assert {"onnxruntime", "pytorch", "tensorrt", "tensorrt-rtx", "tensorrt_rtx", "openvino"} == NAMES


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ENGINE)))
def test_no_module_outside_compares_the_name_of_a_runtime(path):
    assert compared(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "planted",
    [
        "if runtime == 'openvino': pass",
        "if 'openvino' != runtime: pass",
        "known = runtime in ('openvino', 'other')",
        "OURS = ('openvino',)\nknown = runtime in OURS",
        "WAYS = {'openvino': 1}",
        "way = ways['openvino']",
        "way = ways.get('openvino')",
        "ours = runtime.startswith('openvino')",
        "match runtime:\n    case 'openvino': pass",
    ],
)
def test_one_that_is_planted_is_found(planted):
    assert compared(planted) == ["openvino"]
