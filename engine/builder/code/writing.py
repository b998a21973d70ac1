"""Writing: a statement as parts, without docstrings, positions, empty fields and the names of modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence

from engine.builder.code import bindings, following, handlers, harmless, members, messages, modules, sources, unread
from engine.builder.code.bindings import ImportTarget, Scope
from engine.builder.code.following import Origin, Target
from engine.builder.code.messages import Channel, Message
from engine.builder.code.parts import CodeDraft, CodeReference, ErrorReading, Member, Part, Worded, WrittenCode
from engine.builder.code.unread import Variables

_OPENED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""The kinds of nodes of a syntax tree in whose bodies the order of import statements does not matter.

The order of import statements can matter in the body of an `if` or `try` statement.
"""
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_WORD = re.compile(r"[A-Za-z_]\w{2,40}")
COMPUTED = "getattr()"
"""The mention of a call that uses an attribute by a name that the text does not show."""
PRIVATE = '"_'
"""The mention of a text that begins as the name of a private attribute does."""
_ANYWHERE = ast.Module(body=[], type_ignores=[])
_CHOICE = ast.If(test=ast.Constant(value=True), body=[], orelse=[])


def statement(node: ast.stmt, scope: Scope, *, ordered: bool = False) -> WrittenCode:
    """Return a statement at the top level of a module as parts.

    A name that an import binds is replaced by a reference, so the text stays the same if the name gets an alias or if
    its module moves. A string with the dotted name of a module is replaced by a mark, too, if the module's code counts
    in keys. With `ordered`, an import statement counts by its text.
    """
    writer = _Writer()
    writer.statement(node, scope, within=_CHOICE if ordered else _ANYWHERE)
    return writer.draft.code()


class _Writer:
    def __init__(self) -> None:
        self.draft = CodeDraft()
        self._variables: Variables | None = None
        """The variables of the function that is being written; None outside of functions."""
        self._caught: Mapping[str, tuple[Target, ...]] = {}
        """The exceptions that handlers around the current code have caught, by the name of the variable."""
        self._special: Mapping[type[ast.AST], Callable[..., None]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._name,
            ast.Call: self._call,
            ast.Expr: self._expression,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.Lambda: self._function,
            ast.ClassDef: self._class,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.DictComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.ExceptHandler: self._handler,
            ast.arg: self._argument,
            ast.AnnAssign: self._annotated,
            ast.JoinedStr: self._joined,
        }
        """How nodes that need special treatment are written; all others are written field by field."""

    def statement(self, node: ast.AST, scope: Scope, *, within: ast.AST) -> None:
        """Write a statement in the body of `within`."""
        if isinstance(node, ast.If) and bindings.is_type_checking(node):
            for each in node.orelse:
                self.statement(each, scope, within=within)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, scope, ordered=not isinstance(within, _OPENED))
        elif isinstance(within, ast.ClassDef) and (use := members.use(node, scope)) is not None:
            outer, self.draft = self.draft, CodeDraft()
            self._node(node, scope)
            outer.parts.append(Member(*use, self.draft.code()))
            self.draft = outer
        elif not _is_docstring(node) and not members.is_declaration(node, within) and not self._is_unread(node):
            self._node(node, scope)

    def _is_unread(self, node: ast.AST) -> bool:
        return isinstance(node, ast.stmt) and self._variables is not None and self._variables.is_unread(node)

    def _node(self, node: ast.AST, scope: Scope) -> None:
        self._special.get(type(node), self._fields)(node, scope)

    def _fields(self, node: ast.AST, scope: Scope, body: Scope | None = None, skip: Sequence[str] = ()) -> None:
        """Write the non-empty fields of a syntax tree node, because Python versions differ in a node's empty fields."""
        parts = self.draft.parts
        parts.append(type(node).__name__ + "(")
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or value == [] or name in {"type_comment", "kind"} or name in skip:
                continue
            parts.append(name + "=")
            inner = body if name == "body" and body is not None else scope
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, ast.stmt):
                    self.statement(item, inner, within=node)
                elif isinstance(item, ast.expr_context):
                    parts.append(type(item).__name__)
                elif isinstance(item, ast.AST):
                    self._node(item, inner)
                else:
                    parts.append(repr(item))
        parts.append(")")

    def _constant(self, node: ast.Constant, scope: Scope) -> None:
        text = node.value
        if isinstance(text, str):
            if _DOTTED.fullmatch(text) and modules.counts(text, scope.module) and modules.exists(text):
                self._say("Module()")
                return
            self._mention(text)
        self._say(f"Constant({text!r})")

    def _mention(self, text: str) -> None:
        """Note a text that is the name of an attribute, or the beginning of one that is private."""
        if _WORD.fullmatch(text):
            self.draft.mentions.add(text)
        if text.startswith("_") and not text.startswith("__"):
            self.draft.mentions.add(PRIVATE)

    def _call(self, node: ast.Call, scope: Scope) -> None:
        message = messages.of_call(node, scope)
        if message is not None:
            self._message(message, node, scope)
            return
        named = isinstance(node.func, ast.Name) and node.func.id in {"getattr", "setattr", "delattr"}
        if named and not any(isinstance(each, ast.Constant) for each in node.args[1:2]):
            self.draft.mentions.add(COMPUTED)
        words = unread.worded(node, scope)
        if not words:
            self._fields(node, scope)
            return
        self._say("Call(")
        self._node(node.func, scope)
        for argument in (*node.args, *node.keywords):
            value = argument.value if isinstance(argument, ast.keyword) else argument
            self._say(f"{argument.arg}=" if isinstance(argument, ast.keyword) else ",")
            if value in words:
                self._message(Message(Channel.ARGUMENT, (value,)), value, scope)
            else:
                self._node(value, scope)
        self._say(")")

    def _expression(self, node: ast.Expr, scope: Scope) -> None:
        message = messages.of_call(node.value, scope) if isinstance(node.value, ast.Call) else None
        if message is not None:
            self._message(message, node, scope)
        else:
            self._fields(node, scope)

    def _raise(self, node: ast.Raise, scope: Scope) -> None:
        message = messages.of_raise(node, scope)
        if message is not None:
            self._message(message, node, scope)
        elif isinstance(node.exc, ast.Name) and node.exc.id in self._caught:
            self._say(f"Raise({node.exc.id})")
        else:
            self._fields(node, scope, skip=_plain_cause(node))

    def _assert(self, node: ast.Assert, scope: Scope) -> None:
        self._say("Assert(")
        self._node(node.test, scope)
        message = messages.of_assert(node)
        if message is not None and node.msg is not None:
            self._message(message, node.msg, scope)
        self._say(")")

    def _message(self, message: Message, node: ast.AST, scope: Scope) -> None:
        """Write a message twice: as a text that counts if the message is read, and without the words."""
        outer = self.draft
        self.draft = whole = CodeDraft()
        if message.channel is Channel.ARGUMENT:
            self._node(node, scope)
        elif message.channel is not Channel.DESCRIPTION:
            wordy = node.value if isinstance(node, ast.Expr) else node
            if isinstance(wordy, ast.Call | ast.Raise):
                self._fields(wordy, scope, skip=_plain_cause(wordy))
            else:
                self._node(wordy, scope)
        self.draft = rest = CodeDraft()
        left = harmless.residue(message.words, scope)
        for each in (*message.kept, *left.calls):
            self._node(each, scope)
        shared = sorted(name for name in left.consumed if scope.here.get(name) == () and self._shares(name))
        self._say(f"Consumed({', '.join(shared)})" if shared else "")
        if isinstance(node, ast.Raise):
            self._say("Raise(")
            for kind in message.classes:
                self._target(kind)
            self._say(")")
        elif isinstance(node, ast.Call) or message.channel is Channel.ARGUMENT:
            self._say(f"{message.channel}()")
        self.draft = outer
        outer.parts.append(Worded(message.channel, message.classes, whole.code(), rest.code()))

    def _shares(self, name: str) -> bool:
        return self._variables is None or self._variables.shares(name)

    def _function(self, node: bindings.FunctionLike, scope: Scope) -> None:
        inner, outer = scope.function(node), self._variables
        if outer is None:
            self._variables = Variables(node, inner)
        self._fields(node, scope, body=inner, skip=("returns",))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._annotation(node.returns, scope)
            if handlers.reads_exception(node):
                self.draft.parts.append(ErrorReading(()))
        self._variables = outer

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        outer, self._variables = self._variables, None
        self._fields(node, scope, body=scope.class_body(node))
        self._variables = outer

    def _comprehension(self, node: bindings.Comprehension, scope: Scope) -> None:
        self._node(node.generators[0].iter, scope)  # evaluated outside the comprehension
        self._fields(node, scope.comprehension(node))

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        outer = self._caught
        if node.name is not None:
            self._caught = {**outer, node.name: handlers.classes(node, scope)}
        self._fields(node, scope)
        self._caught = outer

    def _argument(self, node: ast.arg, scope: Scope) -> None:
        self._say(f"arg({node.arg!r})")
        self._annotation(node.annotation, scope)

    def _annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if self._variables is None:
            self._fields(node, scope)
        else:  # Python does not evaluate an annotation in a function
            self._fields(node, scope, skip=("annotation",))

    def _annotation(self, node: ast.expr | None, scope: Scope) -> None:
        """Write an annotation of a parameter or result as a text that leads nowhere: Python runs no code for it."""
        if node is None:
            return
        outer, self.draft = self.draft, CodeDraft()
        self._node(node, scope)
        text = "".join(_words(part) for part in self.draft.parts)
        self.draft = outer
        self._say(text)

    def _joined(self, node: ast.JoinedStr, scope: Scope) -> None:
        """Write an f-string; Python versions differ in how they split its constant texts."""
        text = ""
        self._say("JoinedStr(")
        for value in node.values:
            if isinstance(value, ast.Constant):
                text += str(value.value)
                self._mention(str(value.value))
                continue
            self._say(repr(text) if text else "")
            text = ""
            self._node(value, scope)
        self._say((repr(text) if text else "") + ")")

    def _name(self, node: ast.Name | ast.Attribute, scope: Scope) -> None:
        attributes: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            attributes.insert(0, base.attr)
            base = base.value
        context = type(node.ctx).__name__
        if not isinstance(base, ast.Name):
            self.draft.mentions.update(attributes)
            self._say(f"{context}(")
            self._node(base, scope)
            self._say(f".{'.'.join(attributes)})")
            return
        targets = scope.here.get(base.id)
        if targets and context != "Load":
            self.draft.mentions.add(f"{attributes[-1] if attributes else base.id} =")
        self._say(f"{context}(")
        for target in targets or ():
            if target.runs:
                self._target(following.follow(ImportTarget(target.module, (*target.names, *attributes)), scope.module))
            else:  # a type changes nothing at run time
                self._say(f"type {'.'.join((*target.names, *attributes))!r}")
        if not targets:
            if base.id in self._caught and isinstance(base.ctx, ast.Load):
                self.draft.parts.append(ErrorReading(self._caught[base.id]))
            self.draft.mentions.update(attributes)
            if targets is None:
                self.draft.mentions.add(base.id)
            self._say(".".join((base.id, *attributes)))
        self._say(")")

    def _target(self, target: Target) -> None:
        if target.kind is Origin.COUNTED or target.kind is Origin.FREE:
            self.draft.mentions.update(target.words[1:])
        else:
            self.draft.mentions.update(target.words)
        if target.kind is not Origin.COUNTED:
            words = ".".join(target.words)
            self._say(f":{words}" if target.kind is Origin.FREE else repr(target.dotted))
        elif sources.is_unshaping(target.module, target.words):
            self._say("Description()")
        else:
            self.draft.parts.append(CodeReference(target))

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, *, ordered: bool) -> None:
        for target in bindings.targets(node, scope.package, runs=True):
            star = target.names == ("*",)
            self.draft.imports.update(following.imported(target, scope))
            if star or ordered:  # of two such imports, the later one binds the name
                self._say(f"Import{'*' if star else ''}(")
                self._target(following.follow(ImportTarget(target.module) if star else target, scope.module))
                self._say(")")

    def _say(self, text: str) -> None:
        self.draft.parts.append(text)


def _plain_cause(node: ast.AST) -> Sequence[str]:
    """Return the field of a `raise` statement that only names the cause, which is for people who read the traceback."""
    return ("cause",) if isinstance(node, ast.Raise) and isinstance(node.cause, ast.Name | ast.Constant) else ()


def _words(part: Part) -> str:
    match part:
        case str():
            return part
        case CodeReference(target):
            return f":{'.'.join(target.words)}"
    return ""


def _is_docstring(node: ast.AST) -> bool:
    """Say whether a statement is a bare text: the docstring of a module, class, function or field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
