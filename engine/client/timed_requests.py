"""Repeating: sends the same requests again and again, one after the other, and divides their time into parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from time import sleep

from engine.client import failures, figures
from engine.client.client import Client
from engine.client.figures import ModelTimes, Statistics
from engine.client.model_metadata import ModelMetadata
from engine.client.requests import InferRequest
from engine.kit.bench.stats import MS_DIGITS
from engine.reporting import numbers

_PAUSE = 0.01
"""Seconds between two readings of the server's counters."""
_READINGS = 20
"""The most readings of the server's counters, which never stop growing under the load of other clients."""


def again(client: Client, model: ModelMetadata, requests: Sequence[InferRequest], times: int) -> list[float]:
    """Send all requests `times` times; return the seconds. Raises ServerGoneError with how many were answered."""
    sends = [client.prepare(model, request.arrays) for request in requests]
    seconds: list[float] = []
    try:
        for _ in range(times):
            for send in sends:
                seconds.append(send().seconds)  # noqa: PERF401 - the requests before an error count, too
    except failures.ServerGoneError as error:
        facts = (f"{len(seconds)} of {times * len(sends)} requests were answered before", *error.facts)
        raise failures.ServerGoneError(error.what, facts, error.hint) from error
    return seconds


def settled(client: Client) -> dict[str, figures.Counters]:
    """Return the server's counters once they stop growing: Triton counts a request after its response is sent."""
    current = client.statistics()
    for _ in range(_READINGS):
        sleep(_PAUSE)
        before, current = current, client.statistics()
        if current == before:
            break
    return current


def statistics(
    model: ModelMetadata,
    before: Mapping[str, figures.Counters],
    after: Mapping[str, figures.Counters],
    seconds: Sequence[float],
) -> Statistics:
    """Return the server's mean times of each model, and what remains of the client's mean time: network and client."""
    models = figures.between(model, before, after)
    mean_ms = 1e3 * fsum(seconds) / max(len(seconds), 1)
    server_ms = models[model.name].total_ms if model.name in models else 0.0
    return Statistics(
        models, client_ms=round(mean_ms, MS_DIGITS), network_and_client_ms=round(mean_ms - server_ms, MS_DIGITS)
    )


def table(model: ModelMetadata, statistics: Statistics) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of times: a row for each model, then the network, and last the client's time."""
    columns = sorted(numbers(ModelTimes).items(), key=lambda column: not column[1].unit)
    yield ("ms of a request", *(number.label for _, number in columns))
    for name, times in statistics.models.items():
        indented = name if name == model.name else f"  {name}"
        yield (indented, *(number.text(getattr(times, field)) for field, number in columns))
    for field, number in reversed(numbers(Statistics).items()):
        yield (number.label, number.text(getattr(statistics, field)))
