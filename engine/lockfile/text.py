"""The text of a lock: one fact per line in a stable order, and a digest at the end; no other text reads as a lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import yaml

from engine import digest
from engine.errors import RecipeError
from engine.lockfile.content import (
    Lock,
    LockedJob,
    LockedOutput,
    LockedVariant,
    MachineSection,
    OutputName,
    Rows,
    sections,
)
from engine.text.display import shown
from engine.text.places import Position, Text

FORMAT = "2"
_UNSEALED = "1"
"""The form of locks without a digest, which version 0.1.0 wrote."""

_HEAD = """\
# What the builds of the recipe beside this file are made of. Written by `recipe lock`: review it and commit it; edit
# the recipe instead of this. `recipe build --locked` refuses whatever is not as it is here.
"""
_END = "...\n"
"""The mark at the end of a YAML document."""
_PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./@+*=()-]|:(?=\S)|,(?=\S)|, (?=\S)| (?=[A-Za-z0-9_./(]))*")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_CONFLICT = re.compile(r"^(?:<{7}|={7}$|>{7}|\|{7})", re.MULTILINE)
_ONE_SIDE = "take one side of it (`git checkout --ours` or `--theirs`), then `recipe lock` writes what is true here"
_EDITED = (
    "take back the edit, or take one side of the merge (`git checkout`), or delete the lock; then run `recipe lock`"
)
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Reads each value as a text, because the version 1.10 must not become the number 1.1. PyYAML ships no type hints."""

Tree = Mapping[str, Any]
"""A mapping of YAML."""


def dump(lock: Lock) -> str:
    """Return the lock's text. Equal locks give the same text, whatever the order of their entries."""
    tree = {
        "lock": FORMAT if lock.is_sealed else _UNSEALED,
        **_filled(recipe=lock.version, sources=lock.sources, tools=lock.tools),
        **_filled(environment=lock.variables, steps=lock.steps),
        "variants": {
            name: {"recipe": _rows(each.recipe), "jobs": {job: _job_tree(own) for job, own in each.jobs.items()}}
            for name, each in sorted(lock.variants.items())
        },
        **_filled(machines=[_section_tree(section) for section in lock.machines]),
    }
    text = _HEAD + "\n".join(_lines(tree, "")) + "\n"
    return sealed(text) if lock.is_sealed else text + _END


def sealed(text: str) -> str:
    """Return the lines of a lock with their digest and the mark of the end."""
    return f"{text}digest: {digest.of_bytes(text.encode())}\n{_END}"


def parse(text: Text) -> Lock:
    """Return the lock that a text describes. Only line ends may differ from what `recipe lock` writes for that lock.

    Raises RecipeError with the position of the first line that differs.
    """
    content = text.content.replace("\r\n", "\n").rstrip()
    if conflict := _CONFLICT.search(content):
        at = Text(text.name, content).position(conflict.start())._replace(text=text)
        raise RecipeError("a merge conflict is not resolved", at, hint=_ONE_SIDE)
    try:
        tree = _mapping(yaml.load(content, Loader=_LOADER))  # noqa: S506 - it makes texts, lists and mappings alone
    except (yaml.YAMLError, RecursionError) as error:
        raise _edited(text.marked(getattr(error, "problem_mark", None))) from None
    form = tree.get("lock", FORMAT)
    if form not in (_UNSEALED, FORMAT):
        what = f"this lock has the form {shown(form)}, and this version reads {_UNSEALED} and {FORMAT}"
        at = text.position(text.content.find("\nlock:") + 1)
        raise RecipeError(what, at, hint="use the version of recipe that wrote it, or write it anew")
    lock = _lock(tree, is_sealed=form == FORMAT)
    pairs = zip_longest(content.split("\n"), dump(lock).rstrip().split("\n"))
    for number, (line, written) in enumerate(pairs, 1):
        if line != written:
            raise _edited(Position(text, number, 1))
    return lock


def _edited(at: Position) -> RecipeError:
    what = "the lock was edited, merged or cut off: `recipe lock` would write another line here"
    return RecipeError(what, at, hint=_EDITED)


# What is not as a lock has it is left out here: then `parse` finds that `dump` writes another text.


def _lock(tree: Tree, *, is_sealed: bool) -> Lock:
    return Lock(
        sources=_rows(tree.get("sources")),
        tools=_rows(tree.get("tools")),
        steps=_rows(tree.get("steps")),
        variants={name: _variant(each) for name, each in _trees(tree.get("variants"))},
        machines=sections(each for section in tree.get("machines", ()) for each in _section(_mapping(section))),
        variables=_rows(tree.get("environment")),
        version=_rows(tree).get("recipe", ""),
        is_sealed=is_sealed,
    )


def _variant(tree: Tree) -> LockedVariant:
    return LockedVariant(_rows(tree.get("recipe")), {name: _job(job) for name, job in _trees(tree.get("jobs"))})


def _job(tree: Tree) -> LockedJob:
    return LockedJob(
        needs=_rows(tree.get("needs")),
        reads=_rows(tree.get("reads")),
        gates=tuple(filter(None, _rows(tree).get("gates", "").split(", "))),
        options=_rows(tree.get("options")),
        output=_output(tree),
    )


def _output(tree: Tree) -> LockedOutput | None:
    texts = _rows(tree)
    return LockedOutput(texts["key"], texts.get("artifact"), _rows(tree.get("report"))) if "key" in texts else None


def _section(tree: Tree) -> Iterator[tuple[Rows, OutputName, LockedOutput]]:
    facts = _rows(tree.get("facts"))
    for variant, jobs in _trees(tree.get("variants")):
        for job, each in _trees(jobs):
            if facts and (output := _output(each)) is not None:
                yield facts, (variant, job), output


def _mapping(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _trees(value: Any) -> Iterator[tuple[str, Tree]]:
    return ((name, _mapping(each)) for name, each in _mapping(value).items())


def _rows(value: Any) -> Rows:
    """Return the texts of a mapping in the order of their names."""
    return {name: each for name, each in sorted(_mapping(value).items()) if isinstance(each, str)}


def _filled(**fields: Any) -> dict[str, object]:
    """Return the named arguments as a dictionary, without empty values; mappings in the order of their keys."""
    return {name: _rows(value) if isinstance(value, Mapping) else value for name, value in fields.items() if value}


def _job_tree(job: LockedJob) -> Tree:
    rows = _filled(needs=job.needs, reads=job.reads, gates=", ".join(job.gates), options=job.options)
    return {**rows, **_output_tree(job.output)}


def _section_tree(section: MachineSection) -> Tree:
    variants: dict[str, dict[str, Tree]] = {}
    for (variant, job), output in sorted(section.outputs.items()):
        variants.setdefault(variant, {})[job] = _output_tree(output)
    return {"facts": _rows(section.facts), "variants": variants}


def _output_tree(output: LockedOutput | None) -> Tree:
    return {} if output is None else _filled(key=output.key, artifact=output.artifact, report=output.report)


def _lines(tree: Tree, pad: str) -> Iterator[str]:
    for name, value in tree.items():
        start = f"{pad}{_scalar(name)}:"
        if isinstance(value, str):
            yield f"{start} {_scalar(value)}"
        elif isinstance(value, Mapping):
            yield start if value else f"{start} {{}}"
            yield from _lines(value, pad + "  ")
        else:
            yield start
            for item in value:
                first, *rest = _lines(item, pad + "  ")
                yield f"{pad}- {first.strip()}"
                yield from rest


def _scalar(text: str) -> str:
    """Return a text as a YAML scalar: without quotes where YAML reads back the same text."""
    if _PLAIN.fullmatch(text) and not text.endswith(":"):
        return text
    if text.isprintable() and "'" not in text and text == text.strip():
        return f"'{text}'"
    escaped = "".join(_ESCAPES.get(each, each) if each.isprintable() else f"\\U{ord(each):08x}" for each in text)
    return f'"{escaped}"'
