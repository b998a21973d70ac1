"""Keys: everything that a job's result depends on, as readable rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine import digest
from engine.digest import Digest

Key = dict[str, str]
"""The rows of a key, from name to value: "tools.onnxruntime" has the value "1.31.1", "options.precision" has "int8"."""

CODE = "code"
"""The name of the row for the code that the job runs."""
_INPUTS = "inputs."
"""How the names of the rows for a job's inputs begin."""


@dataclass(frozen=True)
class Change:
    """A row in which two keys differ, with the row's value in each key; None where a key lacks the row."""

    row: str
    old: str | None
    new: str | None


def key_of(
    *,
    options: Mapping[str, Any],
    code: str,
    inputs: Mapping[str, str],
    tools: Mapping[str, str],
    facts: Mapping[str, str],
    variables: Mapping[str, str],
) -> Key:
    """Return the key of a job: rows for code, options, inputs, tools, facts of the machine and environment variables.

    The step's name is no row: the row `code` already stands for everything that the step runs.
    """
    rows = {CODE: str(code)}
    rows.update(option_rows(options))
    rows.update({f"tools.{name}": value for name, value in tools.items()})
    rows.update({f"facts.{name}": value for name, value in facts.items()})
    rows.update({f"env.{name}": value for name, value in variables.items()})
    return with_inputs(rows, inputs)


def with_inputs(rows: Key, inputs: Mapping[str, str]) -> Key:
    """Return a key with the rows `rows`, in which the rows for inputs are replaced by rows for `inputs`."""
    own = {input_row(name): value for name, value in inputs.items()}
    return dict(sorted({**without_inputs(rows), **own}.items()))


def input_row(name: str) -> str:
    """Return the name of the row for an input."""
    return f"{_INPUTS}{name}"


def is_input(row: str) -> bool:
    """Say whether a row, by its name, is one for an input."""
    return row.startswith(_INPUTS)


def without_inputs(key: Key) -> Key:
    """Return a key without its rows for inputs."""
    return {row: value for row, value in key.items() if not is_input(row)}


def input_rows(key: Key) -> Key:
    """Return only the rows of a key for inputs."""
    return {row: value for row, value in key.items() if is_input(row)}


def inputs_of(key: Key) -> dict[str, str]:
    """Return the values of a key's rows for inputs, by the names of the inputs."""
    return {row.removeprefix(_INPUTS): value for row, value in input_rows(key).items()}


def option_rows(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the rows of a key for a step's options: a mapping from names that begin with `options.` to values."""
    rows: dict[str, str] = {}
    for name, value in options.items():
        rows.update(_flat(_inside("options", name), value))
    return rows


def digest_of(key: Key) -> Digest:
    """Return the digest of a key, under which the record is filed."""
    return digest.of_rows(sorted(key.items()))


def changes(old: Key, new: Key) -> tuple[Change, ...]:
    """Return the rows in which two keys differ, in the order of their names."""
    rows = sorted(old.keys() | new.keys())
    return tuple(Change(row, old.get(row), new.get(row)) for row in rows if old.get(row) != new.get(row))


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each leaf of nested mappings and lists with its dotted name; entries of a list are named by number.

    An empty mapping or list counts as a leaf.
    """
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    if not value or not isinstance(value, dict | list):
        yield name, value
    for key, each in inner:
        yield from leaves(_inside(name, str(key)), each)


def _flat(row: str, value: Any) -> dict[str, str]:
    """Return the rows of a key for `value`: a row for each value in nested mappings, or one row if it is no mapping."""
    if isinstance(value, Mapping) and value:
        flat: dict[str, str] = {}
        for name, inner in value.items():
            flat.update(_flat(_inside(row, name), inner))
        return flat
    return {row: text_of(value)}


def _inside(row: str, name: str) -> str:
    """Return the name of the row for the entry `name` of a mapping whose own row would be `row`.

    Any name but a simple one is quoted, so that {"a.b": 1}, {"a": {"b": 1}} and {'"a': {'b"': 1}} have different rows.
    """
    simple = name.isprintable() and "." not in name and name[:1] not in {"", '"'}
    part = name if simple else json.dumps(name)
    return f"{row}.{part}" if row else part


def text_of(value: Any) -> str:
    """Return a value as a text that no other value has: `int8` stays as it is, the string `1` gets quotes."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
        except RecursionError:  # as JSON it would be nested too deep to be read
            pass
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
