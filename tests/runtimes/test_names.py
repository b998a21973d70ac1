"""Nobody outside `engine/runtimes` compares a runtime's name, matches it, or has it as a key."""

import ast
from pathlib import Path

import pytest

import engine
from engine.runtimes import registry

ENGINE = Path(engine.__file__).parent
_OTHER_NAMES = {
    ENGINE / "drafts" / "optimum.py": "the commands of optimum-cli",
    ENGINE / "drafts" / "pbtxt.py": "the backends of Triton",
    ENGINE / "machine" / "tools.py": "libraries",
    ENGINE / "recipe" / "descriptions.py": "the fields of a recipe",
    ENGINE / "recipe" / "schema.py": "the sections of a recipe",
    ENGINE / "text" / "distribution.py": "the extras of this project",
}
"""Files with names of other things, which may be those of runtimes."""
OUTSIDE = sorted(
    path for path in ENGINE.rglob("*.py") if not path.is_relative_to(ENGINE / "runtimes") and path not in _OTHER_NAMES
)
NAMES = {name for known in registry.runtimes() for name in (known, known.replace("-", "_"))} - {"auto"}
"""`auto` is left out: other options have it as a value, too."""
_ASKING = ("endswith", "get", "index", "startswith")


def texts(node: ast.AST | None) -> list[str]:
    """Return the text of a constant expression, or the texts of a tuple, list or set."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    listed = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    return [text for each in listed for text in texts(each)]


def compared(source: str) -> list[str]:
    """Return each runtime's name that a source compares, matches, has as a key, or passes to `get` and the like."""
    if not any(name in source for name in NAMES):
        return []
    tree = ast.parse(source)
    constants = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                values = [left, *others]
            case ast.Dict(keys=keys):
                values = keys
            case ast.MatchValue(value=value):
                values = [value]
            case ast.Subscript(slice=key):
                values = [key]
            case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in _ASKING:
                values = arguments
            case _:
                continue
        values = [constants.get(each.id, each) if isinstance(each, ast.Name) else each for each in values]
        names += [text for each in values for text in texts(each) if text in NAMES]
    return names


def test_there_are_modules_and_names_to_look_at():
    assert len(OUTSIDE) > 100
    assert all(compared(path.read_text("utf-8")) for path in _OTHER_NAMES)
    assert {"inductor", "onnxruntime", "openvino", "pytorch", "tensorrt", "tensorrt-rtx", "tensorrt_rtx"} == NAMES


def test_no_module_outside_compares_the_name_of_a_runtime():
    names = {str(path.relative_to(ENGINE)): compared(path.read_text("utf-8")) for path in OUTSIDE}
    assert {path: each for path, each in names.items() if each} == {}, "ask the runtime's specification instead"


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
