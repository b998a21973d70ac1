"""The essence of a module: the code as text without names of modules, and the modules that the code uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from engine.builder.code import bindings, data, modules
from engine.builder.code.bindings import ImportTarget, Scope

PLACING = frozenset({"makes", "after", "gates"})
"""The attributes of a step's class that decide the step's place in the plan.

The attributes `makes` and `after` decide a step's inputs, and each input has a row of its own in the key; `gates` only
decides when the job starts.
"""
_OPENED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""The kinds of nodes of a syntax tree in whose bodies the order of import statements does not matter.

The order of import statements can matter in the body of an `if` or `try` statement.
"""
_PLACE_READ = re.compile(rb"\.\s*(%b)\b" % "|".join(PLACING).encode())
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")

_PLAIN = {ast.arguments, ast.arg, ast.Call, ast.keyword, ast.Expr, ast.Assign, ast.Tuple, ast.Return, ast.Subscript}
"""Types of frequent syntax tree nodes that need no special treatment; testing for these types first saves time."""

Led = tuple[str | None, str]
"""The target of an import, after re-exported names were followed to the module that defines the name.

For a module whose code counts in keys, the value is the pair (module, name in the module); for any other code, it is
the pair (None, dotted name)."""
NOTHING: Led = (None, "")
"""The value for an import of a whole module of the package `engine` whose code does not count in keys."""


@dataclass
class Essence:
    """The code of a module as text, and the modules that the code uses.

    `leads` are the modules that names in the code stand for, in the order of the text; `reaches` are the targets of all
    import statements.
    """

    parts: list[str] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    reaches: set[Led] = field(default_factory=set)

    @property
    def text(self) -> str:
        """The module's code as text, with a mark at each place where the code uses a module that `leads` lists."""
        return "".join(self.parts)

    @property
    def is_empty(self) -> bool:
        """Whether the module has neither code nor an import that counts in keys."""
        return not self.parts and self.reaches <= {NOTHING, (None, "__future__.annotations")}


def of(
    tree: ast.Module,
    source: bytes,
    scope: Scope,
    follow: Callable[[ImportTarget], Led],
    hands_on: Callable[[str], bool],
) -> Essence:
    """Return the essence of a module: the nodes of its tree without docstrings, positions, empty fields and imports.

    `follow` returns the module and the name that an import finally leads to. `hands_on(package)` is True for a package
    that only re-exports names. A name that an import binds is replaced by a mark, so the text stays the same if the
    name gets an alias or if its module moves. A string with the dotted name of a module is replaced by a mark, too, if
    the module's code counts in keys.
    """
    mentions = _PLACE_READ.search(source) is not None
    writer = _Writer(follow, hands_on, reads_place=mentions and any(_reads_place(node) for node in ast.walk(tree)))
    for statement in tree.body:
        writer.statement(statement, scope, within=tree)
    return writer.essence


class _Writer:
    def __init__(
        self, follow: Callable[[ImportTarget], Led], hands_on: Callable[[str], bool], *, reads_place: bool
    ) -> None:
        self.essence = Essence()
        self._follow, self._hands_on = follow, hands_on
        self._reads_place = reads_place
        """Whether the module's code reads `makes`, `after` or `gates`, so that their values count in keys."""

    def statement(self, node: ast.AST, scope: Scope, *, within: ast.AST) -> None:
        if isinstance(node, ast.If) and bindings.is_type_checking(node):
            for each in node.orelse:
                self.statement(each, scope, within=within)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, scope, ordered=not isinstance(within, _OPENED))
        elif not _is_docstring(node) and not self._only_places(node, within):
            self._node(node, scope)

    def _node(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            self._name(node, scope)
        elif type(node) in _PLAIN:
            self._fields(node, scope)
        else:
            self._special(node, scope)

    def _special(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text) and self._is_module(text, scope):
                self._say("Module()")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._fields(node, scope, body=scope.function(node))
            case ast.ClassDef():
                self._fields(node, scope, body=scope.class_body(node))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._node(node.generators[0].iter, scope)  # evaluated outside the comprehension
                self._fields(node, scope.comprehension(node))
            case _:
                self._fields(node, scope)

    def _fields(self, node: ast.AST, scope: Scope, body: Scope | None = None) -> None:
        """Write the non-empty fields of a syntax tree node, because Python versions differ in a node's empty fields."""
        self._say(type(node).__name__ + "(")
        for name, value in ast.iter_fields(node):
            if value is None or value == [] or name in {"type_comment", "kind"}:
                continue
            self._say(name + "=")
            inner = body if name == "body" and body is not None else scope
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, ast.stmt):
                    self.statement(item, inner, within=node)
                elif isinstance(item, ast.expr_context):
                    self._say(type(item).__name__)
                elif isinstance(item, ast.AST):
                    self._node(item, inner)
                else:
                    self._say(repr(item))
        self._say(")")

    def _name(self, node: ast.Name | ast.Attribute, scope: Scope) -> None:
        attributes: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            attributes.insert(0, base.attr)
            base = base.value
        targets = scope.here.get(base.id, ()) if isinstance(base, ast.Name) else ()
        if not targets:
            self._fields(node, scope)
            return
        self._say(f"{type(node.ctx).__name__}Led(")
        for target in targets:
            self._lead(ImportTarget(target.module, (*target.names, *attributes), target.runs))
        self._say(")")

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, *, ordered: bool) -> None:
        for target in bindings.targets(node, scope.package, runs=True):
            star = target.names == ("*",)
            whole = ImportTarget(target.module)
            self.essence.reaches.add(self._follow(whole if star else target))
            # The module itself runs, even if it only re-exports the name from another module.
            if self._follow(whole)[0] is not None and not self._hands_on(target.module):
                self.essence.reaches.add(self._follow(whole))
            if star or ordered:  # of two such imports, the later one binds the name
                self._say(f"Import{'*' if star else ''}(")
                self._lead(whole if star else target)
                self._say(")")

    def _lead(self, target: ImportTarget) -> None:
        module, words = self._follow(target)
        if not target.runs:  # a type changes nothing at run time
            module = None
        if module is not None:
            self.essence.leads.append(module)
        self._say(f"{'' if module is None else '@'}{words!r}")

    def _only_places(self, node: ast.AST, within: ast.AST) -> bool:
        """Say whether a statement only sets `makes`, `after` or `gates` in a class, or only declares data files."""
        name = _assigned(node) if isinstance(within, ast.Module | ast.ClassDef) else None
        if name == data.NAME:
            return bool(data.names_of(node, within))
        return name in PLACING and isinstance(within, ast.ClassDef) and not self._reads_place

    def _is_module(self, text: str, scope: Scope) -> bool:
        return modules.counts(text, scope.module) and modules.exists(text)

    def _say(self, text: str) -> None:
        self.essence.parts.append(text)


def _assigned(node: ast.AST) -> str | None:
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


def _is_docstring(node: ast.AST) -> bool:
    """Say whether a statement is a bare text: the docstring of a module, class, function or field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _reads_place(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in PLACING and isinstance(node.ctx, ast.Load)
