"""Load table: the figures of a load test, a row a point, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.client.figures import ClientFigures, Errors, Latencies, LoadFigures, ModelTimes, NotMeasured
from engine.reporting import Number, measured, numbers

_NOTHING = "-"
FULL = 0.9
"""The share of a CPU from which a process of the client is at its limit."""


@dataclass(frozen=True)
class _Served:
    """The server's share of a request's time, of an ensemble that of its models together."""

    queue_ms: float = field(metadata=measured("queue", unit="ms", digits=3))
    compute_ms: float = field(metadata=measured("compute", unit="ms", digits=3))


def titles(figures: LoadFigures) -> list[str]:
    """Return the titles of the columns. The latencies, and the server's queue and compute times, are ms a request."""
    return [number.label for number, _ in _cells(figures, entry="")]


def row(figures: LoadFigures, *, entry: str) -> list[str]:
    """Return the cells of a point's row; `entry` is the model that clients call."""
    return [_NOTHING if value is None else number.text(value) for number, value in _cells(figures, entry=entry)]


def notes(figures: LoadFigures) -> list[str]:
    """Return what else there is to say of a point: errors in the server's words, and whether the client kept up."""
    said = [f"{count} x {message}" for message, count in figures.errors.messages.items()]
    if isinstance(figures.latency, NotMeasured) and not said:
        said.append("no request began and was answered: use a longer --duration")
    if isinstance(figures.client, ClientFigures) and figures.client.saturated:
        said.append(_limit(figures.client))
    return said


def _limit(client: ClientFigures) -> str:
    if client.busy >= FULL:
        return f"the client used {client.busy:.0%} of a CPU and adds to the latencies: use more --processes"
    late = f"{client.late_p95_ms:.1f} ms"
    return f"the client was woken {late} late and adds to the latencies: the machine is busy, measure from another"


def _cells(figures: LoadFigures, *, entry: str) -> Iterator[tuple[Number, float | None]]:
    """Yield each column and its value: of the load what it has, of the others every number."""
    yield from ((number, value) for number, value in _of(type(figures), figures) if value is not None)
    yield from _of(Latencies, figures.latency)
    yield from _of(_Served, _served(figures.server, entry))
    yield from _of(Errors, figures.errors)


def _of(kind: type, value: object) -> Iterator[tuple[Number, float | None]]:
    return ((number, getattr(value, name, None)) for name, number in numbers(kind).items())


def _served(server: Mapping[str, ModelTimes], entry: str) -> _Served | NotMeasured:
    own = server.get(entry)
    if own is None or not own.requests:
        return NotMeasured()
    parts = [model for name, model in server.items() if name != entry] or [own]
    return _Served(sum(part.queue_ms for part in parts), sum(part.compute_ms for part in parts))
