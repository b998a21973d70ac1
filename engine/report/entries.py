"""Entries: what is kept of each variant of a build, and the lines that a build prints from entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.builder.plan_cache import Entry
from engine.events import Ended, Noticed, Planned
from engine.report import json_lines, plain
from engine.store.materialize import marker
from engine.store.record import Record
from engine.text.redaction import redacted

if TYPE_CHECKING:
    from engine.builder.lookup import Lookup
    from engine.builder.variant import PlannedVariant
    from engine.store.store import Store


def files(
    variant: PlannedVariant, lookup: Lookup, records: Iterable[Record], package: Path | None
) -> dict[str, list[str]]:
    """Return the part of an entry that names files."""
    sources = (source for job in variant.jobs for source in job.traits.sources.values())
    outputs = sorted(set(_outputs(lookup.store, records, package)))
    return {"inputs": sorted(lookup.sources.files(sources)), "outputs": outputs}


def _outputs(store: Store, records: Iterable[Record], package: Path | None) -> Iterator[str]:
    """Yield the files of records and artifacts, and the files and folders of the package at `package`."""
    for record in records:
        yield str(store.record_path(record.digest))
        if store.is_on_remote(record):  # nobody has needed its files yet
            continue
        folder = str(store.artifact_path(record.artifact))
        yield from (f"{folder}/{name}" for name in record.files)
    if package is not None:
        yield str(marker(package))
        yield str(package)
        yield from (str(path) for path in package.rglob("*"))


def printed(plan: Planned, ends: Iterable[Ended], table: str, *, many: bool) -> Entry:
    """Return the part of an entry that a build prints where nothing has changed; with `many`, lines name variants."""
    folded: Counter[tuple[str, str | None, str]] = Counter()
    talk: list[str] = []
    news: list[str] = []
    again = [  # the events where nothing has to be built
        replace(event, state="cached", seconds=0.0, arrival=None) if event.state in ("built", "cached") else event
        for event in ends
    ]
    for event in again:
        lines = plain.lines(event, many=many)
        talk += lines
        if plain.JobCounts().take(event):
            folded[event.state, event.waits_for, event.advice] += 1
        else:
            news += lines
    texts = {
        "planned": _text([json_lines.line(replace(plan, seconds=()))]),
        "ended": _text(map(json_lines.line, again)),
        "talk": _text(talk),
        "news": _text(news),
        "table": table,
    }
    clean = redacted("\0".join(texts.values())).split("\0")
    return {**dict(zip(texts, clean, strict=True)), "folded": [(*fold, count) for fold, count in folded.items()]}


def talk(entries: Mapping[str, Entry], notices: Iterable[str], *, folded: bool) -> str:
    """Return the lines of an up-to-date build for people, without its last; `folded` counts jobs without news."""
    head = _text(line for text in notices for line in plain.lines(Noticed(text), many=True))
    if not folded:
        return head + "".join(each["talk"] for each in entries.values())
    counts = plain.JobCounts()
    for name, each in entries.items():
        for state, device, advice, count in each["folded"]:
            counts.take(Ended(name, "", state, waits_for=device, advice=advice), count)
    return head + "".join(each["news"] for each in entries.values()) + _text(counts.lines())


def json(entries: Mapping[str, Entry], notices: Iterable[str]) -> str:
    """Return the lines of an up-to-date build for programs, without its last line."""
    every = entries.values()
    head = _text(json_lines.line(Noticed(text)) for text in notices)
    return head + "".join([*(each["planned"] for each in every), *(each["ended"] for each in every)])


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
