"""The lists of records that other machines made, for a machine that lacks the hardware and cannot compute the keys."""

# A list has the records of one code with one set of options, each with the inputs that its key names. A list is a hint:
# whoever reads it checks every record that it names.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.key import Key, digest_of, input_rows
from engine.store.record import Record
from engine.store.remote.envelope import WRONG, parse
from engine.store.remote.objects import RefusedError, is_record_name, record_name

LARGEST = 4 << 20
"""The most bytes of a list."""
_LONGEST = 256
"""The most records in a list; the latest stay."""
_DEVICE = "facts.device."
"""How the rows begin that only a machine with a GPU can compute."""
_MOST_CANDIDATES = 8
"""How many records with other inputs are looked at: another machine's CPU may have made its inputs differently."""


@dataclass(frozen=True)
class Name:
    """The record of a key: the key's digest in stores, and the name of the object at the remote."""

    key: str
    object: str


@dataclass(frozen=True)
class ListedRecord:
    """A record in a list, and the records that its inputs come from."""

    name: Name
    inputs: Mapping[str, str]
    earlier: tuple[Name, ...]
    time: float

    def fields(self) -> dict[str, Any]:
        """Return the candidate for JSON."""
        earlier = [[name.key, name.object] for name in self.earlier]
        return {"key": self.name.key, "object": self.name.object, "inputs": dict(self.inputs), "earlier": earlier,
                "time": self.time}  # fmt: skip


def needs_listing(record: Record) -> bool:
    """Say whether machines without the hardware of a record need a list to find the record."""
    return any(row.startswith(_DEVICE) for row in record.key)


def candidate(record: Record, earlier: Iterable[Record]) -> ListedRecord:
    """Return the entry of a record, with the records of the jobs before it."""
    return ListedRecord(
        _name(record.key), input_rows(record.key), tuple(_name(each.key) for each in earlier), record.made_at
    )


def with_candidate(every: Sequence[ListedRecord], new: ListedRecord) -> tuple[ListedRecord, ...]:
    """Return a list with one more candidate, the latest first, without the oldest of a list that is too long."""
    others = [each for each in every if each.name != new.name]
    return tuple(sorted([new, *others], key=lambda each: -each.time)[:_LONGEST])


def nearest(every: Sequence[ListedRecord], key: Key) -> list[Name]:
    """Return the records to look at for a key, with those that they come from: same inputs first, then the latest."""
    inputs = input_rows(key)
    same = [each for each in every if each.inputs == inputs]
    chosen = (same or [each for each in every if each.inputs.keys() == inputs.keys()])[:_MOST_CANDIDATES]
    return list(dict.fromkeys(name for each in chosen for name in (*each.earlier, each.name)))


def encode(every: Sequence[ListedRecord]) -> bytes:
    """Return a list as JSON."""
    return json.dumps([each.fields() for each in every], sort_keys=True).encode() + b"\n"


def decode(raw: bytes) -> tuple[ListedRecord, ...]:
    """Return the list in JSON. Raises RefusedError for other bytes, and for names that are no records."""
    try:
        return tuple(
            ListedRecord(
                _checked(each["key"], each["object"]),
                {str(row): str(value) for row, value in each["inputs"].items()},
                tuple(_checked(*pair) for pair in each["earlier"]),
                float(each["time"]),
            )
            for each in parse(raw)
        )
    except WRONG:
        raise RefusedError("wrong list", "a list of other machines' records is in an unknown form") from None


def _name(key: Key) -> Name:
    return Name(digest_of(key), record_name(key))


def _checked(key: str, name: str) -> Name:
    if not (is_record_name(name) and len(key) < len(name) and key.isalnum()):
        raise RefusedError("wrong list", f"a list of other machines' records names {name[:80]!r}")
    return Name(key, name)
