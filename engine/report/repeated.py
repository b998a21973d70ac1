"""The lines of a snapshot about some variants, which a build prints anew, and the lines about all other variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.events import Ended, Event, Planned
from engine.report import folding, json_lines, plain
from engine.store.store import Store
from engine.store.stored_plan import Fields
from engine.text import lists


class RepeatedLines:
    """The lines that an up-to-date build prints, without the lines about the variants that are built again."""

    def __init__(self, snapshot: Mapping[str, Any], variants: Iterable[Fields], store: Store, *, many: bool) -> None:
        """`variants` are the stored variants that are built again. `many` says whether the build has others."""
        self._many = many
        self._store = store
        self._talk: list[str] = snapshot["talk"].split("\n")
        self._json: list[str] = snapshot["json"].split("\n")
        events = [event for variant in variants for event in _events(variant, store)]
        self._talk_again = {line for event in events for line in plain.lines(event, many=many)}
        self._json_again = {json_lines.line(event) for event in events}

    @property
    def are_known(self) -> bool:
        """Whether the snapshot has exactly the lines that the stored variants would print."""
        return self._talk_again <= set(self._talk) and self._json_again <= set(self._json)

    def others(self, *, json: bool) -> str:
        """Return the lines about the other variants, without the last line of the build."""
        lines, again = (self._json, self._json_again) if json else (self._talk, self._talk_again)
        # The text ends with the last line of the build and a line break.
        return "".join(f"{line}\n" for line in lines[:-2] if line not in again)

    def others_folded(self) -> str:
        """Return the lines about the other variants, with one line for all that is cached."""
        lines = self.others(json=False).splitlines()
        cached = [line.split() for line in lines if line.startswith("cached ")]
        rest = [line for line in lines if not line.startswith("cached ")]
        variants = {words[1] for words in cached}
        counted = f"{lists.counted(len(cached), 'job')} of {lists.counted(len(variants), 'variant')}"
        return "".join(f"{line}\n" for line in (*rest, f"{'cached':<{folding.WIDTH}}{counted}"))

    def json_with(self, old: Iterable[Fields], new: Iterable[Fields]) -> str:
        """Return the JSON lines of the snapshot, with the lines about the variants `new` in place of `old`."""
        lines = {
            json_lines.line(was): json_lines.line(now)
            for before, after in zip(old, new, strict=True)
            for was, now in zip(_events(before, self._store), _events(after, self._store), strict=True)
        }
        return "\n".join(lines.get(line, line) for line in self._json)


def _events(variant: Fields, store: Store) -> Iterator[Event]:
    """Yield the events of a stored variant in which nothing has to be built."""
    _, _, name, _ = variant["subject"]
    jobs = variant["jobs"]
    yield Planned(
        name, tuple((job["name"], tuple(dict.fromkeys((*job["needs"].values(), *job["gates"])))) for job in jobs)
    )
    for job in jobs:
        place = store.artifact_path(job["artifact"])
        yield Ended(name, job["name"], "cached", key=job["key"], artifact=job["artifact"], path=place)
