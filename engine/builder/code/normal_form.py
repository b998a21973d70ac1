"""Normal form: the syntax tree of a module as text, without comments, docstrings, formatting and places in the file."""

# Two modules have the same normal form only if Python runs the same code for both. The form does not depend on the
# version of Python that parses the module, as far as both versions know its syntax.

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import Any

_SEPARATOR = "\0"
"""Stands between the words of a normal form. No name contains it, and `ascii` of a text never does."""
_NAME, _CONSTANT = "@", "="
"""The first letters of a name and of a constant. No type of a node and no field begins with them."""
_LEFT_OUT = frozenset({"ctx", "kind", "type_comment"})
"""Fields of nodes that follow from the node's place in the tree, or that Python ignores."""
_IMPORTING = frozenset({ast.Import, ast.ImportFrom, ast.Call})
_BY_NAME = frozenset({"import_module", "__import__"})
"""Functions that import the module which their first argument names."""


@dataclass(frozen=True)
class Import:
    """An import in the code of a module: `import module`, or `from module import name`."""

    module: str
    """The absolute name of the module."""
    name: str = ""
    """The imported name; "" for an import of the module itself."""


@dataclass(frozen=True)
class NormalForm:
    """The code of a module in its normal form, with the imports anywhere in the code."""

    text: str
    imports: tuple[Import, ...]
    """The imports that can run, also those in the bodies of functions, and `import_module` with a literal name."""
    typing_imports: tuple[Import, ...]
    """The imports under `if TYPE_CHECKING:`, which never run."""


def of(tree: ast.Module, package: str) -> NormalForm:
    """Return the normal form of a module; `package` is the package against which its relative imports resolve."""
    writer = _Writer(package)
    for statement in tree.body:
        if type(statement) is not ast.Expr or not _is_text(statement):
            writer.node(statement)
    imports, typing_imports = (tuple(dict.fromkeys(each)) for each in (writer.imports, writer.typing_imports))
    return NormalForm(_SEPARATOR.join(writer.words), imports, typing_imports)


class _Writer:
    """Writes the words of a normal form, and collects imports on the way. It is fast, as each plan waits for it."""

    def __init__(self, package: str) -> None:
        self.words: list[str] = []
        self.imports: list[Import] = []
        self.typing_imports: list[Import] = []
        self._package = package

    def node(self, node: ast.AST) -> None:
        """Write a node: its type, its fields that have a value, and an end."""
        kind: Any = type(node)
        fields, add = node.__dict__, self.words.append
        if kind is ast.Name:
            add(_NAME + fields["id"])
            return
        if kind is ast.Constant:
            add(_literal(fields["value"]))
            return
        if kind in _IMPORTING:
            self.imports += _imports(node, self._package)
        elif kind is ast.JoinedStr:
            fields = {"values": [each for each in fields["values"] if not _is_empty(each)]}
        add(kind.__name__)
        if kind is ast.If and _is_type_checking(fields["test"]):
            self._typing(node)
        else:
            for name in _fields(kind):
                value = fields.get(name)
                if value is not None and value != []:
                    self._field(name, value)
        add(")")

    def _field(self, name: str, value: Any) -> None:
        self.words.append(name)
        if type(value) is list:
            for each in value:
                if not isinstance(each, ast.AST):
                    self.words.append(repr(each))
                elif type(each) is not ast.Expr or not _is_text(each):
                    self.node(each)
            self.words.append("]")
        elif isinstance(value, ast.AST):
            self.node(value)
        else:
            self.words.append(repr(value))

    def _typing(self, node: Any) -> None:
        """Write an `if TYPE_CHECKING:`, whose imports never run."""
        self._field("test", node.test)
        runs, self.imports = self.imports, self.typing_imports
        self._field("body", node.body)
        self.imports = runs
        self._field("orelse", node.orelse)


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in kind._fields if name not in _LEFT_OUT)


def _is_text(node: ast.Expr) -> bool:
    """Say whether a statement is only a text: a docstring, or a text that says what a variable is."""
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_empty(part: ast.expr) -> bool:
    """Say whether a part of an f-string is an empty text: some versions of Python put one behind a nested field."""
    return isinstance(part, ast.Constant) and part.value == ""


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _literal(value: object) -> str:
    """Return a constant as text: `ascii` depends on no version of Unicode, and refuses only numbers of many digits."""
    return _CONSTANT + (hex(value) if type(value) is int else ascii(value))


def _imports(node: ast.AST, package: str) -> list[Import]:
    match node:
        case ast.Import():
            return [Import(_own(alias.name)) for alias in node.names]
        case ast.ImportFrom():
            outer = package.split(".")
            base = ".".join([*outer[: len(outer) - node.level + 1], *filter(None, [node.module])])
            module = base if node.level else _own(node.module or "")
            return [Import(module, alias.name) for alias in node.names]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]):
            return [Import(_own(module))] if name in _BY_NAME and not module.startswith(".") else []
    return []


def _own(module: str) -> str:
    """Return the name of the module that counts: `recipe_build.X` hands on the names of `engine.X`."""
    first, dot, rest = module.partition(".")
    return f"engine{dot}{rest}" if first == "recipe_build" else module
