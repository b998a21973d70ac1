"""Parts: the code of a statement as text, with the names in it that stand for other code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from engine.builder.code.following import Target
from engine.builder.code.messages import Channel


@dataclass(frozen=True)
class CodeReference:
    """A name that stands for code that counts."""

    target: Target


@dataclass(frozen=True)
class ErrorReading:
    """A handler that reads the text or an attribute of the exceptions of some classes; no classes stand for all."""

    classes: tuple[Target, ...]


@dataclass(frozen=True)
class Worded:
    """A message: `whole` counts if some code may read the message, and `rest` otherwise."""

    channel: Channel
    classes: tuple[Target, ...]
    whole: WrittenCode
    rest: WrittenCode


class Use(StrEnum):
    """Who uses a member of a class, if the code of a step does not name the member."""

    PLACE = "place"
    """The plan: `makes`, `after` and `gates` of any class."""
    BUILDER = "builder"
    """The builder, which calls the hooks of a step and reads the step's declarations."""
    OWN = "own"
    """Nobody: the name begins with an underscore."""


@dataclass(frozen=True)
class Member:
    """A statement in the body of a class that counts only if somebody uses the member."""

    name: str
    use: Use
    code: WrittenCode


Part = str | CodeReference | ErrorReading | Worded | Member


@dataclass(frozen=True)
class WrittenCode:
    """The parts of some code in the order of its text."""

    parts: tuple[Part, ...] = ()
    mentions: frozenset[str] = frozenset()
    """The attributes, and the texts that are names, in the code, without those in messages and members."""
    imports: frozenset[str] = frozenset()
    """The modules that import statements in the bodies of functions name."""

    def references(self) -> Iterator[Target]:
        """Yield all code that the code refers to, also in messages."""
        for part in self.parts:
            match part:
                case CodeReference(target):
                    yield target
                case Worded():
                    yield from part.whole.references()
                    yield from part.rest.references()
                case Member():
                    yield from part.code.references()


@dataclass
class CodeDraft:
    """Code that is being written."""

    parts: list[Part] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)

    def code(self) -> WrittenCode:
        """Return the code, with neighboring texts joined."""
        joined: list[Part] = []
        texts: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                texts.append(part)
                continue
            joined += ["".join(texts)] if texts else []
            joined.append(part)
            texts = []
        joined += ["".join(texts)] if texts else []
        return WrittenCode(tuple(joined), frozenset(self.mentions), frozenset(self.imports))
