"""Repeating: the same requests again and again, one after the other, with the server's own share of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from time import sleep
from typing import TYPE_CHECKING

from engine.client import counters, failures
from engine.client.client import Client
from engine.client.entry import Entry
from engine.client.figures import Latencies, ModelTimes, Statistics
from engine.client.requests import Asked
from engine.kit.bench import stats
from engine.reporting import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

_PAUSE, _LOOKS = 0.01, 20
"""Seconds between two looks at the counters, and how many there are: other clients may never let them stand still."""


@dataclass(frozen=True)
class Answered:
    """One answer: outputs by name, and the seconds that it took."""

    asked: Asked
    outputs: Mapping[str, np.ndarray]
    seconds: float


def first(client: Client, entry: Entry, requests: Sequence[Asked]) -> Iterator[Answered]:
    """Give the answer to each request, as it comes."""
    for asked in requests:
        seconds, decoded = client.asking(entry, asked.arrays)()
        yield Answered(asked, decoded(), seconds)


def again(client: Client, entry: Entry, requests: Sequence[Asked], times: int) -> list[float]:
    """Send all requests `times` more times; return the seconds that each took.

    Raises failures.Gone, with how many were answered until then.
    """
    asking = [client.asking(entry, asked.arrays) for asked in requests]
    seconds: list[float] = []
    try:
        for _ in range(times):
            for ask in asking:
                seconds.append(ask()[0])  # noqa: PERF401 - what was answered before an error counts
    except failures.Gone as error:
        facts = (f"{len(seconds)} of {times * len(asking)} requests were answered before", *error.facts)
        raise failures.Gone(error.what, facts, error.hint) from error
    return seconds


def settled(client: Client, entry: Entry) -> dict[str, counters.Counters]:
    """Return the server's counters once they stand still: Triton counts a request after it has answered it."""
    found = client.statistics()
    for _ in range(_LOOKS):
        sleep(_PAUSE)
        before, found = found, client.statistics()
        if found.get(entry.name) == before.get(entry.name):
            break
    return found


def latencies(seconds: Sequence[float]) -> Latencies:
    """Return mean and percentiles in milliseconds, of values in seconds."""
    values = sorted(1e3 * each for each in seconds)
    shares = {f"p{share}_ms": round(stats.percentile(values, share / 100), 4) for share in (50, 90, 95, 99)}
    mean = round(fsum(values) / len(values), 4)
    return Latencies(mean_ms=mean, **shares, max_ms=round(values[-1], 4), requests=len(values))


def statistics(
    entry: Entry,
    before: Mapping[str, counters.Counters],
    after: Mapping[str, counters.Counters],
    seconds: Sequence[float],
) -> Statistics:
    """Return the server's times by model, and what of the client's remains: the network and the client itself."""
    models = counters.between(entry, before, after)
    mean = 1e3 * fsum(seconds) / max(len(seconds), 1)
    served = models[entry.name].total_ms if entry.name in models else 0.0
    return Statistics(models, client_ms=round(mean, 4), network_and_client_ms=round(mean - served, 4))


def table(entry: Entry, statistics: Statistics) -> Iterator[tuple[str, ...]]:
    """Yield the rows that show statistics to people: a row for each model, last the time that the client measured."""
    columns = sorted(numbers(ModelTimes).items(), key=lambda column: not column[1].unit)
    yield ("ms of a request", *(number.label for _, number in columns))
    for name, model in statistics.models.items():
        indented = name if name == entry.name else f"  {name}"
        yield (indented, *(number.text(getattr(model, field)) for field, number in columns))
    for field, number in reversed(numbers(Statistics).items()):
        yield (number.label, number.text(getattr(statistics, field)))
