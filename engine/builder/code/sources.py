"""Sources: each module's file read and parsed once, with its statements and the names that they bind."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from engine.builder.code import bindings, modules, trees
from engine.builder.code.bindings import ImportTarget, Scope
from engine.errors import StepError
from engine.system import regular

SHAPES = "shapes_output"
"""The variable by which a module or class declares that its results shape no output: `shapes_output = False`."""
_DYNAMIC = frozenset({"globals", "locals", "exec", "eval", "__import__"})
"""Functions with which code can reach a module's own names in a way that the text of the code does not show."""
_MAYBE_DYNAMIC = re.compile(
    rb"(?<![.\w])(globals|locals|exec|eval)\b|\bvars\s*\(|__import__|__getattr__|\bsys\s*\.\s*modules|from\s+sys\s+import|import\s*\*"
    rb"|\bbuiltins\b"
)
"""A pattern that is in the text of every dynamic module, and of some others; a search for the pattern is fast."""


@dataclass(frozen=True)
class ModuleSource:
    """The text of a module, its syntax tree, and its statements at the top level.

    The statements under `if TYPE_CHECKING:`, which never run, are left out.
    """

    module: str
    path: Path
    before: os.stat_result
    text: bytes
    tree: ast.Module
    statements: tuple[ast.stmt, ...]
    names: Mapping[str, tuple[int, ...]]
    """The statements that bind each name, by number; names that only import statements bind are left out."""
    scope: Scope

    @cached_property
    def loads(self) -> frozenset[str]:
        """All names that the code of the module reads."""
        return frozenset(_loads(self.tree))

    @cached_property
    def is_dynamic(self) -> bool:
        """Whether code may reach the module's names in a way that no text shows, so that the module counts whole."""
        if _MAYBE_DYNAMIC.search(self.text) is None:
            return False
        return "__getattr__" in self.names or any(_is_dynamic(node) for node in trees.walk(self.tree))

    @cached_property
    def is_program(self) -> bool:
        """Whether the module can run as a program of its own, so that another program may read what it prints."""
        return any("__name__" in _loads(node.test) for node in self.statements if isinstance(node, ast.If))

    @cached_property
    def is_unshaping(self) -> bool:
        """Whether the module declares that its results shape no output."""
        return _declares(self.tree, self.module)

    @cached_property
    def imports(self) -> tuple[ast.Import | ast.ImportFrom, ...]:
        """The import statements that run when the module is imported, without those in the bodies of functions."""
        return tuple(imports_of(self.statements))

    def definition(self, name: str) -> ast.stmt | None:
        """Return the only statement that binds a name; None for a name that several statements or none bind."""
        numbers = self.names.get(name, ())
        return self.statements[numbers[0]] if len(numbers) == 1 else None


@cache
def of(module: str) -> ModuleSource | None:
    """Return the source of a module; None for a module that is missing, compiled or without a file."""
    path = modules.file_of(module)
    if path is None or path.suffix != ".py":
        return None
    before = os.stat(path)
    text = regular.read(path)
    tree = ast.parse(text)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    statements = tuple(_running(tree.body))
    imported: dict[str, tuple[ImportTarget, ...]] = {}
    numbers: dict[str, list[int]] = {}
    others: set[str] = set()
    for number, node in enumerate(statements):
        plain = isinstance(node, ast.Import | ast.ImportFrom)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound: Mapping[str, tuple[ImportTarget, ...]] = {node.name: ()}
        else:
            bound = bindings.bound((node,), package)
        for name, targets in bound.items():
            numbers.setdefault(name, []).append(number)
            if plain:
                imported[name] = (*imported.get(name, ()), *targets)
            else:
                others.add(name)
    checked = [node for node in tree.body if isinstance(node, ast.If) and bindings.is_type_checking(node)]
    typed = {name: targets for name, targets in bindings.bound(checked, package).items() if targets}
    own = {name: tuple(where) for name, where in numbers.items() if name in others}
    here = {**typed, **imported, **{name: (ImportTarget(module, (name,)),) for name in own}}
    return ModuleSource(module, path, before, text, tree, statements, own, Scope(here, here, module, package))


def is_unshaping(module: str, words: tuple[str, ...]) -> bool:
    """Say whether a module, or the class that `words` name in it, is declared to shape no output."""
    source = of(module)
    if source is None:
        return False
    if source.is_unshaping:
        return True
    node = source.definition(words[0]) if words else None
    return isinstance(node, ast.ClassDef) and _declares(node, module)


def hands_on(package: str) -> bool:
    """Say whether a package of this project only re-exports names.

    The `__init__.py` of a package that only re-exports names does not count in the keys of steps that import the
    package's modules.

    The `__init__.py` of another project's package always counts, because it may import modules for side effects.
    """
    source = of(package) if modules.is_ours(package) else None
    return source is not None and all(_is_handing_on(statement) for statement in source.tree.body)


def imports_of(body: Iterable[ast.AST]) -> Iterable[ast.Import | ast.ImportFrom]:
    """Yield the import statements in some code, without those in functions and those under `if TYPE_CHECKING:`."""
    todo = list(body)[::-1]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and bindings.is_type_checking(node):
            todo += node.orelse[::-1]
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case) and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ):
            todo += [*trees.children(node)][::-1]


def assigned(node: ast.AST) -> str | None:
    """Return the name in an assignment to a single name; None for all other statements."""
    targets: Iterable[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = (node.target,)
    match tuple(targets):
        case (ast.Name(id=name),):
            return name
    return None


def is_option(node: ast.AST, within: ast.AST) -> bool:
    """Say whether a statement in a class defines a field, which is an option of a step: one without `ClassVar`."""
    if not isinstance(within, ast.ClassDef) or not isinstance(node, ast.AnnAssign):
        return False
    return "ClassVar" not in ast.unparse(node.annotation)


def forget() -> None:
    """Forget the sources of all modules, so that the files are read again."""
    of.cache_clear()
    modules.forget()


def _running(body: Iterable[ast.stmt]) -> Iterable[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and bindings.is_type_checking(node):
            yield from _running(node.orelse)
        else:
            yield node


def _is_handing_on(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=value):
            return isinstance(value, ast.Constant) or (
                isinstance(value, ast.List | ast.Tuple) and all(isinstance(each, ast.Constant) for each in value.elts)
            )
    return False


def _declares(within: ast.Module | ast.ClassDef, module: str) -> bool:
    """Say whether the body of a module or class has the statement `shapes_output = False`.

    A field of a class with an annotation other than `ClassVar` is an option, and declares nothing.
    """
    for node in within.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or assigned(node) != SHAPES or is_option(node, within):
            continue
        if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, bool):
            raise StepError(
                f"{module} declares `{SHAPES}` with a value that must be computed",
                [f"line {node.lineno}"],
                f"write `{SHAPES} = False` for code whose results shape no output, or leave it out",
            )
        return not node.value.value
    return False


def _is_dynamic(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="vars"), args=[]):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name, value=ast.Name(id="builtins")):
            return name in _DYNAMIC
        case ast.Attribute(attr="modules", value=ast.Name(id="sys")):
            return True
        case (
            ast.ImportFrom(names=[ast.alias(name="*")])
            | ast.ImportFrom(module="sys", names=[ast.alias(name="modules")])
        ):
            return True
    return False


def _loads(tree: ast.AST) -> Iterable[str]:
    return (node.id for node in trees.walk(tree) if type(node) is ast.Name and type(node.ctx) is not ast.Store)
