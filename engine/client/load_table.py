"""Load table: the figures of a load test as a table for people, with a row for each point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from engine.client.figures import ClientFigures, Errors, Latencies, LoadFigures, ModelTimes, NotMeasured, StreamTimes
from engine.reporting import Number, measured, numbers

_NOTHING = "-"
FULL = 0.9
"""The CPU use from which on a process of the client counts as overloaded, as a share of one CPU."""


@dataclass(frozen=True)
class _ServerTimes:
    """The time that a request spends queued and computed on the server; for an ensemble, the sum over its models."""

    queue_ms: float = field(metadata=measured("queue", unit="ms", digits=3))
    compute_ms: float = field(metadata=measured("compute", unit="ms", digits=3))


def titles(figures: LoadFigures) -> list[str]:
    """Return the titles of the load table's columns.

    The latencies, the queue time and the compute time in the table are milliseconds per request.
    """
    return [number.label for number, _ in _cells(figures, entry="")]


def row(figures: LoadFigures, *, entry: str) -> list[str]:
    """Return the cells of a point's row in the load table; `entry` is the model that the client calls."""
    return [_NOTHING if value is None else number.text(value) for number, value in _cells(figures, entry=entry)]


def notes(figures: LoadFigures) -> list[str]:
    """Return the lines below a point's row: error messages, and the warning that the client itself was too slow."""
    lines = [f"{count} x {message}" for message, count in figures.errors.messages.items()]
    if isinstance(figures.latency, NotMeasured) and not lines:
        lines.append("no request began and was answered: use a longer --duration")
    if isinstance(figures.client, ClientFigures) and figures.client.saturated:
        lines.append(_warning(figures.client))
    return lines


def _warning(client: ClientFigures) -> str:
    if client.busy >= FULL:
        return f"the client used {client.busy:.0%} of a CPU and adds to the latencies: use more --processes"
    late = f"{client.late_p95_ms:.1f} ms"
    return f"the client was woken {late} late and adds to the latencies: the machine is busy, measure from another"


def _cells(figures: LoadFigures, *, entry: str) -> Iterator[tuple[Number, float | None]]:
    """Yield each column of the load table with its value.

    A field that describes the load, such as its rate, is a column only where the field has a value.
    """
    yield from ((number, value) for number, value in _of(type(figures), figures) if value is not None)
    yield from _of(Latencies, figures.latency)
    if figures.stream is not None:
        yield from _of(StreamTimes, figures.stream)
    yield from _of(_ServerTimes, _server_times(figures.server, entry))
    yield from _of(Errors, figures.errors)


def _of(kind: type, value: object) -> Iterator[tuple[Number, float | None]]:
    return ((number, getattr(value, name, None)) for name, number in numbers(kind).items())


def _server_times(server: Mapping[str, ModelTimes], entry: str) -> _ServerTimes | NotMeasured:
    own = server.get(entry)
    if own is None or not own.requests:
        return NotMeasured()
    models = [model for name, model in server.items() if name != entry] or [own]
    return _ServerTimes(sum(model.queue_ms for model in models), sum(model.compute_ms for model in models))
