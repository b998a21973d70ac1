"""Repeating: the same requests again and again, one after the other, with the server's own share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from time import sleep
from typing import TYPE_CHECKING, Any

from engine.client import counters, failures
from engine.client.client import Client
from engine.client.entry import Entry
from engine.client.requests import Asked
from engine.kit.bench import stats

if TYPE_CHECKING:
    from collections.abc import Iterator


_PAUSE, _LOOKS = 0.01, 20
"""Seconds between two looks at the counters, and how many there are: other clients may never let them stand still."""


@dataclass(frozen=True)
class Answered:
    """One answer: outputs by name, and the seconds that it took."""

    asked: Asked
    outputs: dict[str, Any]
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


def latencies(seconds: Sequence[float]) -> dict[str, float | int]:
    """Return mean and percentiles in milliseconds, of values in seconds."""
    values = sorted(1e3 * each for each in seconds)
    shares = {f"p{share}_ms": stats.percentile(values, share / 100) for share in (50, 90, 95, 99)}
    every = {"mean_ms": fsum(values) / len(values), **shares, "max_ms": values[-1]}
    return {name: round(value, 4) for name, value in every.items()} | {"requests": len(values)}


def statistics(
    entry: Entry, before: dict[str, counters.Counters], after: dict[str, counters.Counters], seconds: Sequence[float]
) -> dict[str, Any]:
    """Return the server's times by model, and what of the client's remains: the network and the client itself."""
    models = counters.between(entry, before, after)
    mean = 1e3 * fsum(seconds) / max(len(seconds), 1)
    served = models.get(entry.name, {}).get("total_ms", 0.0)
    return {"models": models, "client_ms": round(mean, 4), "network_and_client_ms": round(mean - served, 4)}


def table(entry: Entry, said: dict[str, Any]) -> Iterator[str]:
    """Give the lines that show statistics to people."""
    columns = ("total", "queue", "input", "infer", "output")
    fields = ("total_ms", "queue_ms", "compute_input_ms", "compute_infer_ms", "compute_output_ms")
    names = [name if name == entry.name else f"  {name}" for name in said["models"]]
    width = max(len(name) for name in (*names, "network and client"))
    yield f"{'ms of a request':<{width}}{''.join(f'{column:>9}' for column in columns)}   requests  runs"
    for name, model in zip(names, said["models"].values(), strict=True):
        times = "".join(f"{model[field]:>9.3f}" for field in fields)
        yield f"{name:<{width}}{times}{model['requests']:>11}{model['executions']:>6}"
    yield f"{'network and client':<{width}}{said['network_and_client_ms']:>9.3f}"
    yield f"{'as the client saw':<{width}}{said['client_ms']:>9.3f}"
