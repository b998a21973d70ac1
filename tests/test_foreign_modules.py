"""Two files change modules of others: one for the trace of a worker, one for memory and for settings."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ENGINE = Path(__file__).parent.parent / "engine"
CHANGING = {"builder/audit.py", "kit/onnx/foreign_functions.py"}
"""The two files."""
IN_THE_SERVER = "kit/triton/served/"
"""Files that are copied into packages: they run in Triton's process, and in none of this program."""
STREAMS = {"sys.stdin", "sys.stdout", "sys.stderr"}
"""What Python's documentation lets a program assign, and what `system/streams.py` assigns."""
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def offences(tree: ast.AST, modules: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield each line that changes a module, or the class of an object; `modules` are the names of what is imported."""
    inner = list(scope(tree))
    modules = (modules - set(bound(tree, inner))) | set(imported(inner))
    for node in inner:
        if any(is_change(target, modules) for target in targets(node)):
            yield node.lineno, ast.unparse(node)
        if isinstance(node, SCOPES):
            yield from offences(node, modules)


def scope(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below a function or a module, and of the functions in it only their beginning."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, SCOPES):
            yield from scope(child)


def imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((each.asname or each.name).partition(".")[0] for each in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (each.asname or each.name for each in node.names)
        if isinstance(node, ast.Assign) and is_module(node.value, frozenset(imported_before(nodes, node))):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def imported_before(nodes: list[ast.AST], last: ast.AST) -> Iterator[str]:
    for node in nodes:
        if node is last:
            return
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name).partition(".")[0] for each in node.names)


def bound(tree: ast.AST, nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names that a function binds to something of its own."""
    if isinstance(tree, SCOPES):
        yield from (node.arg for node in ast.walk(tree.args) if isinstance(node, ast.arg))
        yield from (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def targets(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        for target in node.targets:
            yield from target.elts if isinstance(target, ast.Tuple | ast.List) else (target,)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield node.target
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
        yield ast.Attribute(node.args[0], "any")
    elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("sys.modules.") and writes(node.func):
        yield ast.Subscript(node.func.value, ast.Constant(""))


def writes(method: ast.expr) -> bool:
    return isinstance(method, ast.Attribute) and method.attr in {"pop", "update", "setdefault", "clear", "popitem"}


def is_change(target: ast.expr, modules: frozenset[str]) -> bool:
    text = ast.unparse(target)
    if isinstance(target, ast.Attribute):
        return text not in STREAMS and (target.attr == "__class__" or is_module(target.value, modules))
    if not isinstance(target, ast.Subscript):
        return False
    container = target.value
    namespace = container.value if isinstance(container, ast.Attribute) and container.attr == "__dict__" else None
    if isinstance(container, ast.Call) and ast.unparse(container.func) == "vars" and container.args:
        namespace = container.args[0]
    return ast.unparse(container) == "sys.modules" or (namespace is not None and is_module(namespace, modules))


def is_module(value: ast.expr, modules: frozenset[str]) -> bool:
    """Say whether a value is imported, a part of what is imported, or the result of `import_module`."""
    while isinstance(value, ast.Attribute) and ast.unparse(value) not in STREAMS:
        value = value.value
    if isinstance(value, ast.Subscript):
        return ast.unparse(value.value) == "sys.modules"
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in ("import_module", "__import__")
    return isinstance(value, ast.Name) and value.id in modules


def test_nothing_but_two_files_changes_modules_of_others_or_the_class_of_an_object():
    files = {path.relative_to(ENGINE).as_posix(): path for path in sorted(ENGINE.rglob("*.py"))}
    assert files.keys() >= CHANGING
    lost = [
        f"engine/{name}:{line}: {text}"
        for name, path in files.items()
        if name not in CHANGING and not name.startswith(IN_THE_SERVER)
        for line, text in offences(ast.parse(path.read_text("utf-8")))
    ]
    assert lost == [], "\n".join(["put it into kit/onnx/foreign_functions.py, or do without:", *lost])


@pytest.mark.parametrize(
    ("planted", "is_offence"),
    [
        ("import onnx.helper\nonnx.helper.make_node = None", True),
        ("import numpy as np\ndef one():\n    np.load = None", True),
        ("from onnx import numpy_helper as reader\nreader.to_array = None", True),
        ("def one():\n    from torch import config\n    config.threads: int = 1", True),
        ("def one():\n    from torch import config\n    config.threads += 1", True),
        ("import torch\nkept = torch._C\nkept.infer = None", True),
        ("from importlib import import_module\nimport_module('onnx').load = None", True),
        ("import importlib\ncontainer = importlib.import_module('onnx')\ndef one():\n    container.load = None", True),
        ("import onnx\nonnx.a, onnx.b = 1, 2", True),
        ("import onnx\ndel onnx.load", True),
        ("import onnx\nsetattr(onnx, 'load', None)", True),
        ("import sys\nsetattr(sys.modules['onnx'], 'load', None)", True),
        ("import sys\nsys.modules['onnx'] = None", True),
        ("import sys\ndel sys.modules['onnx']", True),
        ("import sys\nsys.modules.pop('onnx')", True),
        ("import onnx\nvars(onnx)['load'] = None", True),
        ("import onnx\nonnx.__dict__['load'] = None", True),
        ("class A:\n    def one(self):\n        self.__class__ = A", True),
        ("import builtins\nbuiltins.__import__ = None", True),
        ("import sys\nsys.stdout = None", False),
        ("import os\nos.environ['A'] = 'b'", False),
        ("from dataclasses import field\ndef one(field):\n    field.name = 'a'", False),
        ("from functools import cache\ndef one():\n    cache = object()\n    cache.full = True", False),
        ("import sys\nprint(sys.modules.get('onnx'))", False),
    ],
)
def test_each_way_to_change_a_module_is_found(planted, is_offence):
    assert bool(list(offences(ast.parse(planted)))) is is_offence
