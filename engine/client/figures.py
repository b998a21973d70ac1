"""Figures: what was measured of a server, from outside and by its own counters, with how each number is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.reporting import TypedReport, measured, significant


@dataclass(frozen=True)
class NotMeasured:
    """What nobody measured: nothing began and was answered, or who put the load tells nothing of it."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Milliseconds from a request to its answer, as the client saw them."""

    mean_ms: float = field(metadata=measured("mean", unit="ms", digits=3))
    p50_ms: float = field(metadata=measured("p50", unit="ms", digits=3))
    p90_ms: float = field(metadata=measured("p90", unit="ms", digits=3))
    p95_ms: float = field(metadata=measured("p95", unit="ms", digits=3))
    p99_ms: float = field(metadata=measured("p99", unit="ms", digits=3))
    max_ms: float | None = field(default=None, metadata=measured("max", unit="ms", digits=3))
    requests: int


@dataclass(frozen=True)
class ModelTimes:
    """What a model did by the server's counters; the times are milliseconds of one request to the entry.

    Rows are what requests held, executions how often the model ran: dynamic batching puts requests together.
    """

    requests: int = field(metadata=measured("requests", digits=0))
    failed: int
    rows: int
    executions: int = field(metadata=measured("runs", digits=0))
    total_ms: float = field(metadata=measured("total", unit="ms", digits=3))
    queue_ms: float = field(metadata=measured("queue", unit="ms", digits=3))
    compute_input_ms: float = field(metadata=measured("input", unit="ms", digits=3))
    compute_infer_ms: float = field(metadata=measured("infer", unit="ms", digits=3))
    compute_output_ms: float = field(metadata=measured("output", unit="ms", digits=3))

    @property
    def compute_ms(self) -> float:
        """All that is computing: getting the inputs ready, running the model, getting the outputs ready."""
        return self.compute_input_ms + self.compute_infer_ms + self.compute_output_ms


@dataclass(frozen=True)
class Statistics:
    """Where the time of repeated requests went: the server's times by model, and what remains of the client's."""

    models: Mapping[str, ModelTimes]
    """The entry first, then the models that it consists of."""
    client_ms: float = field(metadata=measured("as the client saw", unit="ms", digits=3))
    network_and_client_ms: float = field(metadata=measured("network and client", unit="ms", digits=3))


@dataclass(frozen=True)
class QueryFigures(TypedReport):
    """What a query took: the first time, and again and again if that was asked for."""

    first_ms: float = field(metadata=measured("first", unit="ms", digits=3))
    latency: Latencies | None = None
    statistics: Statistics | None = None


@dataclass(frozen=True)
class Errors:
    """Requests that failed, and the commonest reasons in the server's words."""

    count: int = field(metadata=measured("errors", digits=0))
    share: float
    messages: Mapping[str, int]


@dataclass(frozen=True)
class ClientFigures:
    """What the load cost the client: where that is too much, the latencies are the client's and not the server's."""

    processes: int
    busy: float
    """The share of a CPU that the busiest process used."""
    late_p95_ms: float
    saturated: bool


@dataclass(frozen=True, kw_only=True)
class LoadFigures(TypedReport):
    """One point of a load test: what was put on the server, and what came of it."""

    concurrency: int | None = field(default=None, metadata=measured("clients", digits=0))
    """Of a closed loop."""
    rate: float | None = field(default=None, metadata=significant("rate/s", digits=6))
    """Of an open loop."""
    by: str
    throughput: float = field(metadata=measured("requests/s", digits=1))
    requests: int
    latency: Latencies | NotMeasured
    errors: Errors
    client: ClientFigures | NotMeasured
    tokens_per_second: float | None = field(default=None, metadata=measured("tokens/s", digits=1))
    """Of models that generate."""
    server: Mapping[str, ModelTimes]
    """By model; none where the server tells no statistics."""
