"""Closure: all code that some code reaches, and the rules for it that follow from what the code does."""

# Whether a message counts, or a member of a class, depends on all code that is reached. The rules only ever grow: more
# code reads more messages and uses more members. Statements to which the rules matter are therefore looked at again
# whenever the rules have grown, until nothing changes.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

from engine.builder.code import hierarchy, reading
from engine.builder.code.following import Origin, Target
from engine.builder.code.messages import Channel
from engine.builder.code.parts import CodeReference, ErrorReading, Member, Use, Worded, WrittenCode
from engine.builder.code.writing import COMPUTED, PRIVATE

READERS = {
    Channel.PRINT: {"redirect_stdout", "redirect_stderr", "stdout =", "stderr =", "print =", "dup2", "__stdout__"},
    Channel.WARNING: {
        "catch_warnings", "filterwarnings", "simplefilter", "showwarning =", "showwarning", "captureWarnings",
    },
    Channel.LOG: {"addHandler", "Handler", "StreamHandler", "FileHandler", "basicConfig", "captureWarnings"},
    Channel.ERROR: {
        "exc_info", "exception", "format_exc", "format_exception", "format_exception_only", "excepthook =",
        "__cause__", "__context__", "last_value",
    },
}  # fmt: skip
"""Names with which code can read the messages of a channel in ways that the analysis does not follow."""
_ALL_READERS = {name for names in READERS.values() for name in names}
_LISTING = frozenset({"__getattribute__", "__dict__", "dir", "getmembers", "vars"})
"""Names with which code can use all members of a class."""
_NAMING = frozenset({COMPUTED, "attrgetter", "methodcaller"})
"""Names with which code can use members of a class by a name that its text does not show."""
_SUBCLASSES = "__subclasses__"


@dataclass(frozen=True)
class CodeNode:
    """A statement of a module; without a number, the whole module."""

    module: str
    number: int | None = None


Place = tuple[str, tuple[CodeNode, ...]]
"""A name in the text, as dotted words, and the code that the name stands for."""


@dataclass
class Flat:
    """What counts of a statement under some rules."""

    parts: list[str | Place] = field(default_factory=list)
    reached: set[CodeNode] = field(default_factory=set)
    mentions: set[str] = field(default_factory=set)
    reads: set[tuple[Target, ...]] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    depends: bool = False
    """Whether other rules could change what counts."""


@dataclass
class Closure:
    """All code that some nodes reach."""

    steps: frozenset[CodeNode] = frozenset()
    """The classes of steps, whose hooks only the builder calls."""
    nodes: dict[CodeNode, Flat] = field(default_factory=dict)
    modules: dict[str, None] = field(default_factory=dict)
    """The modules that are imported, whose effects count."""
    idle: dict[CodeNode | str, None] = field(default_factory=dict)
    """Code that no reached code names, but that counts because its module is imported; libraries by name."""
    mentions: set[str] = field(default_factory=set)
    reads: set[tuple[Target, ...]] = field(default_factory=set)
    """The exceptions whose text or attributes some handler reads; () stands for all exceptions."""

    def walk(self, todo: Iterable[CodeNode]) -> None:
        """Add nodes, and all code that they reach."""
        fresh = list(todo)
        while fresh:
            rules = len(self.mentions), len(self.reads)
            while fresh:
                node = fresh.pop()
                if node not in self.nodes:
                    fresh += self._add(node, _flat(node) or self._under_rules(node))
            if rules != (len(self.mentions), len(self.reads)):
                for node in [node for node, flat in self.nodes.items() if flat.depends]:
                    fresh += self._add(node, self._under_rules(node))

    def add_idle(self) -> None:
        """Add what no reached code names: constants and imports that nobody reads, in case that somebody does."""
        names = {name for node in self.nodes for name in reading.refers(node.module, node.number)}
        for module in list(self.modules):
            nodes = [
                CodeNode(module, number) for name, number in reading.constants(module) if (module, name) not in names
            ]
            if _SUBCLASSES in self.mentions:
                nodes += [CodeNode(module, number) for number in reading.classes(module)]
            for name, target in reading.idle_imports(module):
                if (module, name) in names:
                    continue
                if target.kind is not Origin.COUNTED:
                    self.idle[f"{target.kind} {target.dotted if target.kind is Origin.LIBRARY else target.words}"] = (
                        None
                    )
                elif CodeNode(module) in self.nodes:
                    nodes += resolve(target)
            self.idle.update(dict.fromkeys(nodes))
            self.walk(nodes)

    def includes(self, member: Member, node: CodeNode) -> bool:
        """Say whether a member of a class counts."""
        if member.name in self.mentions or (member.use is not Use.PLACE and node not in self.steps):
            return True
        if member.use is not Use.OWN:
            return False
        named = PRIVATE in self.mentions and not _NAMING.isdisjoint(self.mentions)
        return named or not _LISTING.isdisjoint(self.mentions)

    def reads_message(self, message: Worded) -> bool:
        """Say whether some code may read a message."""
        if message.channel is Channel.DESCRIPTION:
            return False
        readers = _ALL_READERS if message.channel is Channel.ARGUMENT else READERS[message.channel]
        if not readers.isdisjoint(self.mentions):
            return True
        if message.channel not in {Channel.ERROR, Channel.ARGUMENT}:
            return False
        return any(hierarchy.catches(each, message.classes) for each in self.reads)

    def _add(self, node: CodeNode, flat: Flat) -> list[CodeNode]:
        self.nodes[node] = flat
        self.mentions |= flat.mentions
        self.reads |= flat.reads
        return [*flat.reached, *self._import({node.module, *flat.imports})]

    def _import(self, names: Iterable[str]) -> list[CodeNode]:
        """Note modules that Python imports, with all modules that they import; return what counts of them always."""
        todo = [name for name in names if name not in self.modules]
        nodes: list[CodeNode] = []
        while todo:
            name = todo.pop()
            if name in self.modules:
                continue
            self.modules[name] = None
            module = reading.read(name)
            nodes += [CodeNode(name, number) for number in module.effects]
            todo += [each for each in module.runs if each not in self.modules]
        return nodes

    def _under_rules(self, node: CodeNode) -> Flat:
        flat = Flat(depends=True)
        _collect(flat, reading.code_of(node.module, node.number or 0), self, node)
        return flat


def of(roots: Iterable[CodeNode], steps: Iterable[CodeNode] = ()) -> Closure:
    """Return all code that some nodes reach; `steps` are the classes of steps, whose hooks only the builder calls."""
    closure = Closure(frozenset(steps))
    closure.walk(roots)
    closure.add_idle()
    return closure


@cache
def resolve(target: Target) -> tuple[CodeNode, ...]:
    """Return the statements that define a target; the whole module where no statement alone defines it."""
    numbers = reading.read(target.module).numbers(target)
    if numbers is None:
        return (CodeNode(target.module),)
    return tuple(CodeNode(target.module, number) for number in numbers)


def forget() -> None:
    """Forget what was resolved, so that it is looked up again."""
    resolve.cache_clear()
    _flat.cache_clear()


@cache
def _flat(node: CodeNode) -> Flat | None:
    """Return what counts of a node under all rules alike; None for a node to which the rules matter."""
    flat = Flat()
    if node.number is None:
        module = reading.read(node.module)
        if module.source is None:
            flat.parts.append(module.content)
            return flat
        numbers = (each for each in range(len(module.source.statements)) if reading.code_of(node.module, each).parts)
        nodes = tuple(CodeNode(node.module, number) for number in numbers)
        flat.parts.append(("", nodes))
        flat.reached.update(nodes)
        return flat
    code = reading.code_of(node.module, node.number)
    if any(isinstance(part, Worded | Member) for part in code.parts):
        return None
    _collect(flat, code, None, node)
    return flat


def _collect(flat: Flat, code: WrittenCode, rules: Closure | None, node: CodeNode, *, shown: bool = True) -> None:
    """Add what counts of some code; with `shown` False, only what the code reaches, and not its text."""
    flat.mentions |= code.mentions
    flat.imports |= code.imports
    for part in code.parts:
        match part:
            case str():
                flat.parts += [part] if shown else []
            case CodeReference(target):
                nodes = resolve(target)
                flat.reached.update(nodes)
                flat.parts += [(".".join(target.words), nodes)] if shown else []
            case ErrorReading(classes):
                flat.reads.add(classes)
            case Worded() if rules is not None:
                is_read = rules.reads_message(part)
                if is_read:
                    _collect(flat, part.whole, rules, node, shown=shown)
                _collect(flat, part.rest, rules, node, shown=shown and not is_read)
            case Member() if rules is not None and rules.includes(part, node):
                _collect(flat, part.code, rules, node, shown=shown)
