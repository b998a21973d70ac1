"""Write a lock as text in a stable order, one fact per line, with a digest at its end; and read it from its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine import digest
from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, MachineSection, Place, sections
from engine.lockfile.reading import EDITED, Reader

if TYPE_CHECKING:
    from engine.text.places import Text

FORMAT = "2"
_UNSEALED = "1"
"""The form of locks without a digest, which version 0.1.0 wrote."""
END = "..."
"""The mark at the end of a YAML document: a lock without the mark was cut off."""

_HEAD = """\
# What the builds of the recipe beside this file are made of. Written by `recipe lock`: review it and commit it; edit
# the recipe instead of this. `recipe build --locked` refuses whatever is not as it is here.
"""
_SEAL = "digest"
_PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./@+*=()-]|:(?=\S)|,(?=\S)|, (?=\S)| (?=[A-Za-z0-9_./(]))*")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_SOURCE = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}

Tree = Mapping[str, Any]


def dump(lock: Lock) -> str:
    """Return the lock's text. Equal locks give the same text, whatever the order of their entries."""
    tree = {
        "lock": FORMAT if lock.is_sealed else _UNSEALED,
        **_filled(recipe=lock.version, sources=lock.sources, tools=lock.tools, environment=lock.variables),
        **_filled(steps=lock.steps),
        "variants": {name: _variant_tree(variant) for name, variant in sorted(lock.variants.items())},
        **_filled(machines=[_section_tree(section) for section in lock.machines]),
    }
    text = _HEAD + "\n".join(_lines(tree, "")) + "\n"
    return sealed(text) if lock.is_sealed else f"{text}{END}\n"


def sealed(text: str) -> str:
    """Return the lines of a lock with their digest and the mark of the end."""
    return f"{text}{_SEAL}: {digest.of_bytes(text.encode())}\n{END}\n"


def parse(text: Text) -> Lock:
    """Return the lock that a text describes. Raises RecipeError with the position of the first error in the text."""
    reader = Reader(text, end=END)
    root = reader.fields(
        reader.root, "lock", "recipe", "sources", "tools", "environment", "steps", "variants", "machines", _SEAL
    )
    form = reader.one_of(root, "lock", _UNSEALED, FORMAT)
    variants = {name: _variant(reader, node) for name, node in reader.entries(root.get("variants")).items()}
    outputs = [each for node in reader.items(root.get("machines")) for each in _section(reader, node)]
    lock = Lock(
        sources=reader.rows(root.get("sources"), _SOURCE),
        tools=reader.rows(root.get("tools")),
        steps=reader.rows(root.get("steps"), _DIGEST),
        variants=variants,
        machines=sections(outputs),
        variables=reader.rows(root.get("environment")),
        version=reader.text_of(root["recipe"]) if "recipe" in root else "",
        is_sealed=form == FORMAT,
    )
    _refuse_edited(reader, root, lock)
    return lock


def _refuse_edited(reader: Reader, root: Mapping[str, Any], lock: Lock) -> None:
    """Raise RecipeError for a lock whose lines are not those that `recipe lock` wrote. Line ends do not count."""
    lines = reader.text.content.replace("\r\n", "\n").rstrip()
    body = lines.rpartition(f"\n{_SEAL}: ")[0] + "\n"
    if lines != sealed(body).rstrip() if lock.is_sealed else _SEAL in root:
        what = f"the lock was edited or merged: its lines are not those of its `{_SEAL}`"
        raise reader.error(root.get(_SEAL, reader.root), what, EDITED)


def _variant(reader: Reader, node: Any) -> LockedVariant:
    fields = reader.fields(node, "recipe", "jobs")
    jobs = {name: _job(reader, job) for name, job in reader.entries(fields.get("jobs")).items()}
    return LockedVariant(reader.rows(fields.get("recipe")), jobs)


def _job(reader: Reader, node: Any) -> LockedJob:
    fields = reader.fields(node, "needs", "reads", "gates", "options", "key", "artifact", "report")
    gates = reader.text_of(fields["gates"]).split(", ") if "gates" in fields else ()
    return LockedJob(
        needs=reader.rows(fields.get("needs")),
        reads=reader.rows(fields.get("reads")),
        gates=tuple(gates),
        options=reader.rows(fields.get("options")),
        output=_output(reader, node, fields) if "key" in fields or "artifact" in fields else None,
    )


def _output(reader: Reader, node: Any, fields: Mapping[str, Any]) -> LockedOutput:
    if "key" not in fields:
        raise reader.error(node, "an artifact without the key that it was made from")
    artifact = reader.text_of(fields["artifact"], _DIGEST) if "artifact" in fields else None
    return LockedOutput(reader.text_of(fields["key"], _DIGEST), artifact, reader.rows(fields.get("report")))


def _section(reader: Reader, node: Any) -> Iterator[tuple[Mapping[str, str], Place, LockedOutput]]:
    fields = reader.fields(node, "facts", "variants")
    facts = reader.rows(fields.get("facts"))
    if not facts:
        raise reader.error(node, "a section of `machines` without the facts that head it")
    for variant, jobs in reader.entries(fields.get("variants")).items():
        for job, output in reader.entries(jobs).items():
            yield facts, (variant, job), _output(reader, output, reader.fields(output, "key", "artifact", "report"))


def _sorted(rows: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(rows.items()))


def _filled(**fields: Any) -> dict[str, object]:
    """Return the named arguments as a dictionary, without empty values; mappings in the order of their keys."""
    return {name: _sorted(value) if isinstance(value, Mapping) else value for name, value in fields.items() if value}


def _variant_tree(variant: LockedVariant) -> Tree:
    return {"recipe": _sorted(variant.recipe), "jobs": {name: _job_tree(job) for name, job in variant.jobs.items()}}


def _job_tree(job: LockedJob) -> Tree:
    rows = _filled(needs=job.needs, reads=job.reads, gates=", ".join(job.gates), options=job.options)
    return {**rows, **(_output_tree(job.output) if job.output else {})}


def _section_tree(section: MachineSection) -> Tree:
    variants: dict[str, dict[str, Tree]] = {}
    for (variant, job), output in sorted(section.outputs.items()):
        variants.setdefault(variant, {})[job] = _output_tree(output)
    return {"facts": _sorted(section.facts), "variants": variants}


def _output_tree(output: LockedOutput) -> Tree:
    return {"key": output.key} | _filled(artifact=output.artifact, report=output.report)


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
