"""Records made on other machines: which will do for a job whose hardware is not here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from engine import gpus
from engine.key import Change, Key, changes
from engine.step import Hardware
from engine.store import Record, Store

_MACHINE = ("facts.", "env.")
"""Rows that only the machine with the hardware has."""


def records(store: Store, step: str) -> list[Record]:
    """Return all records of a step, the latest first."""
    name = json.dumps(step).encode()
    paths = [path for path in store.layout.records.glob("*.json") if name in path.read_bytes()]
    found = [record for path in paths if (record := store.read(path.stem)) is not None and record.key["step"] == step]
    return sorted(found, key=lambda record: -record.made_at)


def fitting(found: Iterable[Record], key: Key, hardware: Hardware) -> Iterable[Record]:
    """Yield the records that are this job's, made on a machine with the hardware. `key` has no rows of a machine."""
    return (record for record in found if not differences(record, key, hardware))


def differences(record: Record, key: Key, hardware: Hardware) -> list[Change]:
    """Return the rows in which a record differs from what is wanted; what the hardware leaves open does not count."""
    made, open_rows = record.key, {f"tools.{hardware.tool}"}
    common = {row: value for row, value in made.items() if not row.startswith(_MACHINE) and row not in open_rows}
    found = list(changes(common, {row: value for row, value in key.items() if row not in open_rows}))
    for row, (wanted, fits) in _wanted(hardware).items():
        if row in made and not fits(made[row]):
            found.append(Change(row, made[row], wanted))
    return found


def nearest(found: Iterable[Record], key: Key, hardware: Hardware) -> tuple[Change, ...]:
    """Return how the record that comes nearest differs; nothing where there is no record."""
    every = sorted((differences(record, key, hardware) for record in found), key=len)
    return tuple(every[0]) if every else ()


def fits_version(version: str, wanted: str | None) -> bool:
    """Say whether a version is one that a recipe asks for: "10.x" is any 10, "10.4" any 10.4."""
    asked = [part for part in (wanted or "").split(".") if part not in {"", "x", "*"}]
    return version.split(".")[: len(asked)] == asked


def _wanted(hardware: Hardware) -> Mapping[str, tuple[str, Callable[[str], bool]]]:
    """Return, for rows about the hardware, what is wanted in words and whether a value is that."""
    names = " or ".join(device.name for device in hardware.devices)
    capabilities = sorted({str(device.sm) for device in hardware.devices})
    return {
        "facts.device.name": (names, lambda made: any(gpus.matches(made, each.name) for each in hardware.devices)),
        "facts.device.sm": (" or ".join(capabilities), lambda made: made in capabilities),
        f"tools.{hardware.tool}": (hardware.version or "any", lambda made: fits_version(made, hardware.version)),
    }
