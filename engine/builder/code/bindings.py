"""The names that imports bind in each scope of a module, and the modules that the names lead to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from engine.builder.code import trees

FunctionLike = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_SCOPES = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef}
_COMPREHENSIONS = {ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp}
_LEAVES = {ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del}
_SILENT = {ast.Constant, ast.Load, ast.Store, ast.Call, ast.Attribute, ast.Expr, ast.Tuple, ast.Assign, ast.Return}
"""Types of frequent syntax tree nodes that bind no name; testing for these types first saves time."""


@dataclass(frozen=True)
class ImportTarget:
    """The target of an import: a module, and names in it.

    `runs` is False for an import statement under `if TYPE_CHECKING:`, which does not run.
    """

    module: str
    names: tuple[str, ...] = ()
    runs: bool = True


Names = Mapping[str, tuple[ImportTarget, ...]]
"""A mapping from each name to the targets of the import statements that bind the name; () if another statement does."""


@dataclass(frozen=True)
class Scope:
    """The targets of names in a scope: `here` for code in the scope itself, `below` for functions inside the scope.

    The functions in a class body do not see the names of the class.
    """

    here: Names
    below: Names
    module: str
    package: str

    def function(self, node: FunctionLike) -> Scope:
        """Return the scope of a function's body."""
        own = _own(node, self.package)
        inner = {**self.below, **dict.fromkeys(_arguments(node.args), ()), **own}
        return Scope(inner, inner, self.module, self.package)

    def class_body(self, node: ast.ClassDef) -> Scope:
        """Return the scope of a class's body."""
        own = _own(node, self.package)
        return Scope({**self.here, **own}, self.below, self.module, self.package)

    def comprehension(self, node: Comprehension) -> Scope:
        """Return the scope of a comprehension, which has variables of its own."""
        variables = {
            each.id: ()
            for generator in node.generators
            for each in trees.walk(generator.target)
            if isinstance(each, ast.Name)
        }
        return Scope({**self.here, **variables}, {**self.below, **variables}, self.module, self.package)


def bound(body: Iterable[ast.AST], package: str) -> dict[str, tuple[ImportTarget, ...]]:
    """Return the names that the code of a scope binds, with the imports that bind the names.

    If an import and another statement bind the same name, only the import counts. A name that `global` or `nonlocal`
    declares belongs to a scope around this one, and is left out.
    """
    others: set[str] = set()
    outer: set[str] = set()
    imported: dict[str, tuple[ImportTarget, ...]] = {}
    typed: dict[str, tuple[ImportTarget, ...]] = {}
    for node, runs in _in_scope(body, runs=True):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, target in _of_import(node, package, runs=runs):
                into = imported if runs else typed
                into[name] = tuple(dict.fromkeys((*into.get(name, ()), target)))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
        elif type(node) not in _SILENT:
            others.update(_bound_by(node))
    names = {**typed, **dict.fromkeys(others, ()), **imported}
    return {name: names[name] for name in names if name not in outer} if outer else names


def forget() -> None:
    """Forget the names that functions and classes bind."""
    _own.cache_clear()


def targets(node: ast.Import | ast.ImportFrom, package: str, *, runs: bool) -> list[ImportTarget]:
    """Return the targets of an import statement; the name `*` stands for all names of a module."""
    if isinstance(node, ast.Import):
        return [ImportTarget(alias.name, runs=runs) for alias in node.names]
    return [ImportTarget(_base(node, package), (alias.name,), runs) for alias in node.names]


def is_type_checking(node: ast.If) -> bool:
    """Say whether a statement is `if TYPE_CHECKING:`, with a body that only a type checker reads."""
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


@cache
def _own(node: FunctionLike | ast.ClassDef, package: str) -> Names:
    """Return the names that the body of a function or class binds."""
    return bound(node.body if isinstance(node.body, list) else [node.body], package)


def _arguments(node: ast.arguments) -> Iterator[str]:
    lone = (each for each in (node.vararg, node.kwarg) if each is not None)
    yield from (each.arg for each in (*node.posonlyargs, *node.args, *node.kwonlyargs, *lone))


def _of_import(node: ast.Import | ast.ImportFrom, package: str, *, runs: bool) -> Iterator[tuple[str, ImportTarget]]:
    for alias, target in zip(node.names, targets(node, package, runs=runs), strict=True):
        if isinstance(node, ast.Import) and alias.asname is None:
            first = alias.name.partition(".")[0]  # `import a.b` binds `a`
            yield first, ImportTarget(first, runs=runs)
        elif alias.name != "*":
            yield alias.asname or alias.name, target


def _base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    around = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
    return f"{around}.{node.module or ''}".rstrip(".")


def _in_scope(body: Iterable[ast.AST], *, runs: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield each node of a scope in the order of the text, with True, or with False if only type checkers read it.

    The result has no nodes of inner scopes, for example of functions in the body.
    """
    todo = [(node, runs) for node in body][::-1]
    while todo:
        node, runs = todo.pop()
        yield node, runs
        kind = type(node)
        if kind in _SCOPES or kind in _LEAVES:
            continue
        if kind in _COMPREHENSIONS:  # in a comprehension, only `:=` binds a name of the scope around it
            todo += [(each.target, runs) for each in trees.walk(node) if isinstance(each, ast.NamedExpr)]
        elif isinstance(node, ast.If) and is_type_checking(node):
            todo += [(each, runs) for each in reversed(node.orelse)] + [(each, False) for each in reversed(node.body)]
        else:
            todo += [(each, runs) for each in trees.children(node)][::-1]


def _bound_by(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node of the syntax tree binds, unless the node is an import; () for most nodes."""
    match node:
        case ast.Name(id=name, ctx=context):
            return () if isinstance(context, ast.Load) else (name,)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)):
            return (name,)
    return ()
