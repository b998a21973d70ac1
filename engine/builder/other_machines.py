"""Other machines: their records, for a job whose hardware this machine lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from engine.key import Change, Key, changes, is_input
from engine.store.record import Record
from engine.store.store import Store
from engine.text.versions import agrees, is_later, is_same_release

if TYPE_CHECKING:
    from engine.step import Hardware

_MACHINE = ("facts.", "env.")
"""How the names of those rows of a key begin that only a machine with the job's hardware can compute."""
_TOOL = "tools."


class OtherMachines:
    """All records of a store.

    They are read when they are first asked for, and again after records were added to the store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_at = -1
        self._records: list[Record] = []
        self._by_artifact: dict[str, list[Record]] = {}
        self._same: dict[tuple[str, str], bool] = {}
        """Whether two artifacts, given as a pair of digests, are outputs of the same job on two machines."""

    def fitting(self, key: Key, hardware: Hardware) -> Iterator[Record]:
        """Yield the records of a job from machines with the required hardware, the latest record first.

        `key` is the job's key without the rows that only a machine with the hardware can compute. What the remote has
        of the job comes into the store before.
        """
        if self._store.tier is not None:
            self._store.tier.gather(key)
        same = (record for record in self._every() if record.key["code"] == key["code"])
        return (record for record in same if not self.differences(record, key, hardware))

    def nearest(self, job: str, key: Key, hardware: Hardware) -> tuple[Change, ...]:
        """Return the rows in which a key differs from the nearest record of the job `job`; () without a record.

        A record counts only if it was made from the same inputs. A record with other inputs belongs to another model,
        perhaps of another recipe, and explains nothing about this job.
        """
        named = (record for record in self._every() if record.job == job)
        every = sorted((self.differences(record, key, hardware) for record in named), key=len)
        same_inputs = (rows for rows in every if not any(is_input(change.row) for change in rows))
        return tuple(next(same_inputs, ()))

    def differences(self, record: Record, key: Key, hardware: Hardware) -> list[Change]:
        """Return the rows in which a record differs from a key or from the required hardware.

        The result leaves out rows that may differ between machines with the same hardware.
        """
        key_there, tools = record.key, {f"tools.{tool}" for tool in hardware.tools}
        rows = [
            change
            for change in changes(_without_machine(key_there), _without_machine(key))
            if change.row not in tools and not _same_release(change) and not self._same_input(change)
        ]
        for row, (words, fits) in _requirements(hardware).items():
            if row in key_there and not fits(key_there[row]):
                rows.append(Change(row, key_there[row], words))
        for each in hardware.each:
            built = record.machine.get(f"{each.tool}.version", "")
            if f"facts.{each.tool}.major" in key_there and is_later(built, than=each.version or ""):
                rows.append(Change(f"facts.{each.tool}.version", built, each.version))
        return rows

    def _same_input(self, change: Change) -> bool:
        """Say whether an input differs only because another machine made the input, for example another CPU."""
        if not is_input(change.row) or change.old is None or change.new is None:
            return False
        pair = (change.old, change.new)
        if pair not in self._same:
            self._same[pair] = False  # stops the recursion if a step hands on its input unchanged
            theirs, ours = ([_without_machine(each.key) for each in self._by_artifact.get(at, [])] for at in pair)
            differing = (changes(one, other) for one in theirs for other in ours)
            self._same[pair] = any(all(map(self._same_input, rows)) for rows in differing)
        return self._same[pair]

    def _every(self) -> list[Record]:
        changed = self._store.layout.records.stat().st_mtime_ns
        if changed != self._read_at:
            self._read_at = changed
            self._records = sorted(self._store.records(), key=lambda record: -record.made_at)
            self._by_artifact, self._same = {}, {}
            for record in self._records:
                self._by_artifact.setdefault(str(record.artifact), []).append(record)
        return self._records


def _same_release(change: Change) -> bool:
    """Say whether two versions of a tool differ only in their build, like 2.13.0+cpu and 2.13.0+cu126."""
    if not change.row.startswith(_TOOL) or change.old is None or change.new is None:
        return False
    return is_same_release(change.old, change.new)


def _without_machine(key: Key) -> Key:
    return {row: value for row, value in key.items() if not row.startswith(_MACHINE)}


def _requirements(hardware: Hardware) -> Mapping[str, tuple[str, Callable[[str], bool]]]:
    """Return, for each row of a key about the hardware, the required value in words and a test function for values."""
    names = " or ".join(device.name for device in hardware.devices)
    capabilities = sorted({str(device.sm) for device in hardware.devices})
    return {
        "facts.device.name": (names, hardware.includes),
        "facts.device.sm": (" or ".join(capabilities), lambda value: value in capabilities),
        **{f"tools.{each.tool}": _version(each.version or "") for each in hardware.each},
        **{f"facts.{each.tool}.major": _version((each.version or "").partition(".")[0]) for each in hardware.each},
    }


def _version(suitable: str) -> tuple[str, Callable[[str], bool]]:
    """Return the versions that are suitable, in words, and a test function for a version."""
    return suitable or "any", lambda value: agrees(suitable, value)
