"""Edits of a Python source at random: semantic ones of a function, and ones that mean nothing.

Python itself judges the edits: a semantic edit compiles to other code, and an edit without a meaning to the same code,
apart from places and docstrings.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import NamedTuple


class Edit(NamedTuple):
    """What an edit does, the line at which it begins, and the text of the whole file afterwards."""

    kind: str
    line: int
    text: str


class _Change(NamedTuple):
    """A replacement of the bytes from `start` to `end`, which are bytes of the UTF-8 text."""

    start: int
    end: int
    by: str


_Changes = Callable[["_Source", ast.AST], Iterator[_Change]]


class _Source:
    """A text, its syntax tree, and the places of its nodes."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode("utf-8")
        self.lines = text.encode("utf-8").split(b"\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.tree = ast.parse(text)

    def start(self, node: ast.AST) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.AST) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.AST) -> str:
        return self.raw[self.start(node) : self.end(node)].decode("utf-8")

    def with_change(self, change: _Change) -> str:
        raw = self.raw[: change.start] + change.by.encode("utf-8") + self.raw[change.end :]
        return raw.decode("utf-8")

    def line_of(self, change: _Change) -> int:
        return self.raw.count(b"\n", 0, change.start) + 1

    def indent(self, node: ast.AST) -> str | None:
        """Return the white space before a node that begins its line; None for another node."""
        before = self.lines[node.lineno - 1][: node.col_offset].decode("utf-8")
        return before if not before.strip() else None


def semantic(text: str, name: str, line: int, chance: random.Random) -> Edit | None:
    """Return an edit that changes what the function does which has this name and begins at this line.

    Each kind of edit is as probable as each other that the function allows. None for code that is no function.
    """
    source = _Source(text)
    functions = (each for each in ast.walk(source.tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    matches = (each for each in functions if each.name == name.rpartition(".")[2] and _first_line(each) == line)
    function = next(matches, None)
    if function is None:
        return None
    before = code_of(text)
    return _edit(source, list(_nodes(function)), _SEMANTIC, lambda _, after: code_of(after) != before, chance)


def meaningless(text: str, chance: random.Random) -> Edit:
    """Return an edit of a module that changes comments, docstrings, formatting or places."""
    source = _Source(text)
    nodes = [source.tree, *_nodes(source.tree, docstrings=True)]
    before = {docstrings: code_of(text, docstrings=docstrings) for docstrings in (True, False)}

    def suits(kind: str, after: str) -> bool:
        docstrings = kind not in _OF_DOCSTRINGS
        return after != text and code_of(after, docstrings=docstrings) == before[docstrings]

    edit = _edit(source, nodes, _MEANINGLESS, suits, chance)
    assert edit is not None
    return edit


def code_of(text: str, *, docstrings: bool = True) -> object:
    """Return the compiled code of a module without its places. Raises SyntaxError and ValueError."""
    tree = ast.parse(text)
    if not docstrings:
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                node.body = [each for each in body if not _is_docstring(each)] or [ast.Pass(lineno=1, col_offset=0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return _without_places(compile(tree, "edited", "exec", dont_inherit=True))


def _without_places(value: object) -> object:
    """Return code, or a constant of code, as values that are equal only for equal code."""
    if not isinstance(value, CodeType):
        inner = [_without_places(each) for each in value] if isinstance(value, tuple) else repr(value)
        return type(value).__name__, inner
    kept = (each for each in dir(value) if each.startswith("co_") and each not in _PLACES)
    return {each: _without_places(getattr(value, each)) for each in kept}


_PLACES = {"co_filename", "co_firstlineno", "co_lines", "co_linetable", "co_lnotab", "co_positions", "co_branches"}


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min(each.lineno for each in (function, *function.decorator_list))


def _edit(
    source: _Source,
    nodes: list[ast.AST],
    kinds: Mapping[str, _Changes],
    suits: Callable[[str, str], bool],
    chance: random.Random,
) -> Edit | None:
    """Return the first edit that suits, of the kinds in a random order, each tried at nodes in a random order."""
    for kind in chance.sample([*kinds], len(kinds)):
        for node in chance.sample(nodes, len(nodes)):
            for change in kinds[kind](source, node):
                after = source.with_change(change)
                try:
                    if suits(kind, after):
                        return Edit(kind, source.line_of(change), after)
                except (SyntaxError, ValueError):
                    continue  # Python refuses the edited code
    return None


def _nodes(within: ast.AST, *, docstrings: bool = False) -> Iterator[ast.AST]:
    """Yield all nodes in a node that have a place, except those in f-strings, whose places differ by version."""
    for node in ast.iter_child_nodes(within):
        if type(node).__name__ in ("JoinedStr", "TemplateStr") or (_is_docstring(node) and not docstrings):
            continue
        if hasattr(node, "lineno"):
            yield node
        yield from _nodes(node, docstrings=docstrings)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _constant(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Constant):
        match node.value:
            case None:
                other: object = 0
            case bool(value):
                other = not value
            case int(value) | float(value) | complex(value):
                other = value + 1
            case str(value):
                other = f"{value}x"
            case bytes(value):
                other = value + b"x"
            case _:
                return
        yield _Change(source.start(node), source.end(node), repr(other))


_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: (r"\bis\b", "is not"),
    ast.IsNot: (r"\bis\s+not\b", "is"),
    ast.In: (r"\bin\b", "not in"),
    ast.NotIn: (r"\bnot\s+in\b", "in"),
}
_OPERATORS = {
    ast.Add: (r"\+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: (r"\*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: (r"\*\*", "*"),
    ast.MatMult: ("@", "*"),
    ast.BitOr: (r"\|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.BitXor: (r"\^", "|"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.And: (r"\band\b", "or"),
    ast.Or: (r"\bor\b", "and"),
}


def _between(source: _Source, left: ast.AST, right: ast.AST, pattern: str, by: str) -> Iterator[_Change]:
    """Yield the change of an operator, which stands between its operands, perhaps beside brackets and comments."""
    start, end = source.end(left), source.start(right)
    text = source.raw[start:end].decode("utf-8")
    for match in re.finditer(pattern, text):
        before, after = (len(text[:place].encode("utf-8")) for place in match.span())
        yield _Change(start + before, start + after, by)


def _comparison(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, node.comparators, strict=False):
            yield from _between(source, left, right, *_COMPARISONS[type(operator)])


def _operator(source: _Source, node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            yield from _between(source, left, right, *_OPERATORS[type(operator)])
        case ast.AugAssign(target=left, op=operator, value=right):
            yield from _between(source, left, right, *_OPERATORS[type(operator)])
        case ast.BoolOp(op=operator, values=[left, right, *_]):
            yield from _between(source, left, right, *_OPERATORS[type(operator)])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield _Change(source.start(node), source.start(operand), "")


def _dropped(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.stmt):
        yield _Change(source.start(node), source.end(node), "pass")


_SEMANTIC: Mapping[str, _Changes] = {
    "another constant": _constant,
    "another comparison": _comparison,
    "another operator": _operator,
    "a dropped statement": _dropped,
}


def _comment(source: _Source, node: ast.AST) -> Iterator[_Change]:
    """Yield a comment in a line of its own before a statement, and one behind it."""
    if isinstance(node, ast.stmt) and (indent := source.indent(node)) is not None:
        yield _Change(source.start(node), source.start(node), f"# a remark: é = 1\n{indent}")
        yield _Change(source.end(node), source.end(node), "  # a remark")


def _blank_lines(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.stmt) and source.indent(node) is not None:
        start = source.starts[node.lineno - 1]
        yield _Change(start, start, "\n   \n\n")


def _other_docstring(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if _is_docstring(node):
        yield _Change(source.start(node), source.end(node), '"""Other words, and `code = 1`."""')


def _more_docstring(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not _is_docstring(node.body[0]):
        first = node.body[0]
        if (indent := source.indent(first)) is not None:
            yield _Change(source.start(first), source.start(first), f'"""New words."""\n{indent}')


def _no_docstring(source: _Source, node: ast.AST) -> Iterator[_Change]:
    body = getattr(node, "body", None)
    if isinstance(body, list) and len(body) > 1:
        for each in filter(_is_docstring, body):
            yield _Change(source.start(each), source.end(each), "")


def _quotes(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not re.search(r"[\\'\"\n]", node.value):
        text = source.of(node)
        if text == f'"{node.value}"':
            yield _Change(source.start(node), source.end(node), f"'{node.value}'")
            yield _Change(source.start(node), source.end(node), f"'''{node.value}'''")


def _parentheses(source: _Source, node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Assign(value=value) | ast.Return(value=ast.expr() as value) | ast.keyword(value=value):
            yield _Change(source.start(value), source.end(value), f"({source.of(value)})")
        case ast.Compare(left=value) | ast.BinOp(left=value) | ast.If(test=value):
            yield _Change(source.start(value), source.end(value), f"(({source.of(value)}))")


def _broken_line(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Call) and node.args:
        start = source.start(node.args[0])
        yield _Change(start, start, "  # a remark\n\n")
    if isinstance(node, ast.BinOp):
        end = source.end(node.left)
        yield _Change(end, end, " \\\n")


def _comma(source: _Source, node: ast.AST) -> Iterator[_Change]:
    last: ast.AST | None = None
    if isinstance(node, ast.Call):
        last = max([*node.args, *(each for each in node.keywords)], key=source.end, default=None)
    elif isinstance(node, ast.List | ast.Tuple | ast.Set):
        last = node.elts[-1] if len(node.elts) > 1 else None
    if last is not None:
        yield _Change(source.end(last), source.end(last), ",")


def _moved(source: _Source, node: ast.AST) -> Iterator[_Change]:
    """Yield other places of all code: lines more at the beginning, and the line ends of another system."""
    if isinstance(node, ast.Module):
        yield _Change(0, 0, "\n" * 40)


def _line_ends(source: _Source, node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Module):
        yield _Change(0, len(source.raw), source.raw.decode("utf-8").replace("\n", "\r\n"))


_OF_DOCSTRINGS = {"another docstring", "a docstring more", "a docstring less"}
_MEANINGLESS: Mapping[str, _Changes] = {
    "a comment": _comment,
    "blank lines": _blank_lines,
    "another docstring": _other_docstring,
    "a docstring more": _more_docstring,
    "a docstring less": _no_docstring,
    "other quotes": _quotes,
    "parentheses": _parentheses,
    "a broken line": _broken_line,
    "a comma at the end": _comma,
    "other lines": _moved,
    "line ends of another system": _line_ends,
}
