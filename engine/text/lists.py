"""Counts and lists of names in texts for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def counted(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or the plural: "1 thread", "8 threads"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counts(by_name: Mapping[str, int]) -> str:
    """Return how often each name occurs, as a text: "12 MatMul, 1 Gather"."""
    return ", ".join(f"{count} {name}" for name, count in by_name.items())


def first_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names of a list as a text, and the number of further names: "a, b and 3 more"."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def extents(shape: Iterable[int | str]) -> str:
    """Return a tensor's shape: "batch x 128"; "a number" for a shape without axes."""
    return " x ".join(map(str, shape)) or "a number"
