"""Parses YAML text into nodes with places: limits on depth and size; words that YAML 1.1 and 1.2 read differently."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from engine.errors import RecipeError
from engine.recipe.node import Node, Scalar, list_node, mapping_node
from engine.text.display import shown
from engine.text.places import UNPRINTABLE, Position, Text

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C is six times as fast

MAX_DEPTH = 32
"""The largest depth of lists and mappings inside each other, limited because functions walk over nodes recursively."""
MAX_VALUES = 20_000
"""Upper limit of the number of values in a recipe; an alias counts as much as the node that it stands for."""

_HINTS = (
    ("mapping values are not allowed", "text that holds `: ` must be quoted; a list item or key may lack its space"),
    ("expected <block end>", "the indentation does not match the lines above"),
    ("could not find expected ':'", "a key needs a colon and a space behind it"),
    ("expected key", "this line stands where a field is meant: indent it as the fields around it, without a dash"),
    ("found character", "a word that starts with this character must be quoted"),
    ("flow", "a bracket or brace is not closed, or a comma is missing"),
    ("unknown escape", "in double quotes, \\ begins an escape: write single quotes"),
    ("quoted scalar", "a quote is not closed"),
)
_EQUALS = r"\s*([A-Za-z_][\w.-]*)\s*=\s*(\S.*?)\s*"
_FIELD = r"(\s*)([A-Za-z_][\w.-]*):( .*)?"
_NO_BLANK = r"\s*([A-Za-z_][\w.-]*):(\S.*?)\s*"
_TWO_FIELDS = r"\s*([A-Za-z_][\w.-]*): +([A-Za-z_][\w.-]*): +(\S.*?)\s*"
_LONGEST = 500
"""The longest line, in characters, whose meaning is guessed."""
_ABOVE = 6
"""How many lines above a line are searched for a field."""
_MAX_DIGITS = 400
"""The most characters in a number of a recipe. Python itself refuses to convert more than 4,300 digits."""
# The core schema of YAML 1.2 (10.3.2), without the forms of numbers that YAML 1.1 and 1.2 read differently.
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, Scalar] = {"": None, **dict.fromkeys(("null", "Null", "NULL"))}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)

# Words that are a truth value, a number or a date in YAML 1.1 and a text in YAML 1.2, or the other way round.
_TRUTH = re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF")
_NUMBER = re.compile(
    r"[-+]?0[0-9_]+(\.[0-9_]*)?([eE][-+]?[0-9]+)?"  # 0123 is 83 in YAML 1.1: octal
    r"|[-+]?0[xob][0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"  # 1:30 is 90 in YAML 1.1: base 60
    r"|[-+]?[0-9]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?",
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")


def parse(text: Text, content: str | None = None) -> Node:
    """Return the YAML document in `text` as a Node. Raises RecipeError with the place of the first error in the text.

    Errors are, beside wrong YAML: no or several documents, duplicate keys, keys that are no text, merge keys, tags, an
    alias inside its own anchor, too many levels or values, and words that YAML 1.1 and 1.2 read differently. If
    `content` is given, this part of `text` is parsed: blanks before it give each character its line and column.
    """
    content = text.content if content is None else content
    if match := UNPRINTABLE.search(content):
        raise RecipeError(
            f"the unprintable character U+{ord(match[0]):04X}",
            Text(text.name, content).position(match.start())._replace(text=text),
            hint='remove it, or write it as an escape inside double quotes: "\\x00"',
        )
    return _Reader(text, content).document()


class _Reader:
    """The parsing of one text: the parser's remaining events, the anchors so far, and the number of values so far."""

    def __init__(self, text: Text, content: str) -> None:
        self.text = text
        self.events = yaml.parse(content, Loader=LOADER)
        self.anchors: dict[str, Node | None] = {}
        self.values = 0

    def document(self) -> Node:
        """Return the text's only YAML document as a Node. Raises RecipeError for none or several."""
        self.next()
        start = self.next()
        if not isinstance(start, yaml.DocumentStartEvent):
            raise RecipeError("the file is empty", self.text.marked(None), hint="a recipe starts with: name: my-model")
        root = self.node(self.next(), 0)
        self.next()
        more = self.next()
        if isinstance(more, yaml.DocumentStartEvent):
            self.refuse("a second document starts here", more, "a recipe is one document; use `matrix` for variants")
        return root

    def next(self) -> Any:
        """Return the next event of PyYAML's parser. Raises RecipeError for an error of PyYAML's parser."""
        try:
            return next(self.events)
        except yaml.MarkedYAMLError as error:
            raise self.syntax(error) from None
        except yaml.YAMLError as error:
            problem = " ".join(str(error).split())
            raise RecipeError(f"not valid YAML: {problem}", self.text.marked(None)) from None

    def node(self, event: Any, depth: int) -> Node:
        """Return the scalar, list, mapping or alias that starts with the parser's event `event`, as a Node."""
        self.count(event, 1)
        if depth > MAX_DEPTH:
            self.refuse(f"lists and mappings lie more than {MAX_DEPTH} deep", event, "a recipe is flat")
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            hint = "write plain values; quote what must stay text"
            self.refuse(f"the tag {tag!r} is not allowed in a recipe", event, hint)
        if event.anchor:
            self.anchors[event.anchor] = None
        node = self.content(event, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def content(self, event: Any, depth: int) -> Node:
        """Return the scalar, list or mapping that starts with the parser's event `event`, as a Node."""
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(item := self.next(), yaml.SequenceEndEvent):
                items.append(self.node(item, depth + 1))
            return list_node(items, self.at(event))
        return self.mapping(event, depth)

    def mapping(self, event: Any, depth: int) -> Node:
        """Return a mapping of YAML as a Node. Raises RecipeError for a YAML key that is no text or is a duplicate."""
        entries: dict[str, Node] = {}
        keys: dict[str, Position] = {}
        while not isinstance(key := self.next(), yaml.MappingEndEvent):
            name = self.key(key)
            if name in entries:
                first = keys[name]
                self.refuse(f"the key `{name}` is there twice", key, "keep one of them", f"first at {first}")
            keys[name] = self.at(key)
            entries[name] = self.node(self.next(), depth + 1)
        return mapping_node(entries, keys, self.at(event))

    def key(self, event: Any) -> str:
        """Return the text of a mapping's key. Raises RecipeError for a key that is no plain text."""
        self.count(event, 1)
        if not isinstance(event, yaml.ScalarEvent):
            self.refuse(
                "a key must be a word", event, "lists, mappings and aliases cannot be keys; is a quote missing?"
            )
        if event.tag is not None or event.anchor:
            self.refuse("a key with a tag or an anchor is not allowed", event, "write the plain word")
        if event.value == "<<" and event.implicit[0]:
            self.refuse("merge keys (<<) are not supported", event, "use `extends: base.yaml`, or write the fields out")
        value = self.scalar(event).value
        if not isinstance(value, str) or not value:
            fraction = f"a fraction has a dot, as in 0.{event.value}; " if event.value.isdecimal() else ""
            self.refuse(f"the key `{event.value}` is not text", event, f'{fraction}a key is quoted: "{event.value}"')
        return value

    def scalar(self, event: Any) -> Node:
        """Return a scalar as a Node: quoted or in a block it is a text, and an unquoted word may be a number."""
        at = self.at(event)
        if not event.implicit[0]:
            return Node(event.value, at, written=event.value)
        try:
            return Node(_value_of(event.value), at, written=event.value)
        except _UnclearWordError as error:
            raise RecipeError(str(error), at, hint=error.hint) from None

    def alias(self, event: Any) -> Node:
        """Return a copy of the Node that an alias stands for; its values count again towards MAX_VALUES."""
        node = self.anchors.get(event.anchor)
        if node is None and event.anchor in self.anchors:
            self.refuse(f"the alias *{event.anchor} stands inside its own anchor", event, "write the value out")
        if node is None:
            self.refuse(
                f"there is no anchor &{event.anchor} above", event, 'text that starts with * must be quoted: "*"'
            )
        self.count(event, node.size)
        return node._replace(at=self.at(event))

    def count(self, event: Any, size: int) -> None:
        """Add `size` to the number of values that were read. Raises RecipeError for more than MAX_VALUES."""
        self.values += size
        if self.values > MAX_VALUES:
            what = f"the recipe holds more than {MAX_VALUES:,} values, aliases counted in full"
            self.refuse(what, event, "data belongs into a file that the recipe names")

    def at(self, event: Any) -> Position:
        """Return the place in the text where an event of the parser starts."""
        return self.text.marked(event.start_mark)

    def refuse(self, what: str, event: Any, hint: str, *facts: str) -> NoReturn:
        """Raise RecipeError with the place in the YAML text where the parser's event `event` starts."""
        raise RecipeError(what, self.at(event), facts=facts, hint=hint)

    def syntax(self, error: yaml.MarkedYAMLError) -> RecipeError:
        """Return the error for text that is no YAML. PyYAML's C and Python parsers give the same message."""
        problem = (error.problem or "unreadable").removeprefix("did not find ").split(", but ")[0]
        context = error.context or ""
        at = self.text.marked(error.problem_mark)
        ends_early = not self.text.line(at.line).strip()  # show where the open part begins
        if context and (ends_early or "expected ':'" in problem):  # the line before has no colon
            at = self.text.marked(error.context_mark)
        line = self.text.raw_line(at.line)
        if "\t" in line[: len(line) - len(line.lstrip())]:
            return RecipeError("not valid YAML: a tab as indentation", at, hint="indent with spaces, never with tabs")
        if repaired := _repaired(self.text, at.line, problem):
            return RecipeError(f"not valid YAML: {problem}", at, hint=repaired)
        hint = next((hint for sign, hint in _HINTS if sign in f"{context} {problem}"), "")
        return RecipeError(f"not valid YAML: {problem}", at, facts=(context,) if context else (), hint=hint)


def _repaired(text: Text, number: int, problem: str) -> str:
    """Return the hint that writes line `number` (from 1) as it is meant; "" where the slip is not known.

    `problem` is what the parser says.
    """
    line = text.raw_line(number)
    if len(line) > _LONGEST:
        return ""
    if line.rstrip().endswith(";"):
        return "leave the semicolon out: the end of a line ends a field"
    if assigned := re.fullmatch(_EQUALS, line):
        return f"write `{assigned[1]}: {shown(assigned[2])}`"
    if "expected ':'" in problem and (close := re.fullmatch(_NO_BLANK, line)):
        return f"a blank is missing behind the colon: `{close[1]}: {shown(close[2])}`"
    if fields := re.fullmatch(_TWO_FIELDS, line):
        meant = f"`{fields[1]}: {{{fields[2]}: {shown(fields[3])}}}`"
        return f"a field in a field stands in braces: {meant}; text with a colon stands in quotes"
    return _indented(text, number, line)


def _indented(text: Text, number: int, line: str) -> str:
    """Return the hint for a field that is not indented as the field above it; "" where the line is no such field."""
    above = next((each for each in range(number - 1, max(number - _ABOVE, 0), -1) if text.raw_line(each).strip()), None)
    field = re.fullmatch(_FIELD, line)
    other = None if above is None else re.fullmatch(_FIELD, text.raw_line(above))
    if field is None or other is None or len(field[1]) == len(other[1]):
        return ""
    above_it, its = len(other[1]), len(field[1])
    return f"indent `{field[2]}` as the fields around it: `{other[2]}` above has {above_it} blanks, it has {its}"


class _UnclearWordError(ValueError):
    """A word that YAML parsers read differently; `hint` tells how to write the word so that all read it alike."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def _value_of(word: str) -> Scalar:
    """Return the value of an unquoted word of YAML. Raises UnclearError where YAML parsers disagree about the word."""
    if word in _WORDS:
        return _WORDS[word]
    first = word[0]
    if first.isdigit() or first in "+-.":
        return _number(word)
    if word == "~":
        raise _UnclearWordError("`~` unquoted means null", 'write null, or quote the text: "~"')
    if _TRUTH.fullmatch(word):
        raise _UnclearWordError(
            f"`{word}` unquoted is text to some readers of YAML and true or false to others",
            f'where text is meant, quote it: "{word}"; else write true or false',
        )
    return word


def _number(word: str) -> Scalar:
    if _INTEGER.fullmatch(word) or (any(c.isdigit() for c in word) and _FLOAT.fullmatch(word)):
        if len(word) > _MAX_DIGITS:
            raise _UnclearWordError(f"a number of {len(word)} characters", "where text is meant, quote it")
        return int(word) if _INTEGER.fullmatch(word) else float(word)
    if _SPECIAL.fullmatch(word):
        return float(word.replace(".", ""))
    if _NUMBER.fullmatch(word):
        raise _UnclearWordError(
            f"`{shown(word)}` unquoted is text to some readers of YAML and an odd number to others",
            f'where text is meant, quote it: "{shown(word)}"; else write a plain decimal number',
        )
    if _DATE.fullmatch(word):
        raise _UnclearWordError(
            f"`{shown(word)}` unquoted is a date to some readers of YAML and text to others",
            f'quote it: "{shown(word)}"',
        )
    return word
