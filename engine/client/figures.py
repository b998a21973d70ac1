"""Figures: the measurements of a query or a load test, by the client and by the server, and how each is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Self

from engine.client.model_metadata import ModelMetadata
from engine.kit.bench import stats
from engine.kit.bench.stats import MS_DIGITS
from engine.reporting import TypedReport, measured, significant

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
"""The parts of a request's time that Triton counts.

Source: "Statistics Extension" of Triton's documentation: waiting for a batch, preparing the inputs, running the model,
preparing the outputs. Triton's counter `success` is the whole time from a request's arrival to its response.
"""
_NANOSECONDS_PER_MS = 1e6


def milliseconds(seconds: float) -> float:
    """Return seconds as milliseconds, rounded to the decimal places that reports keep."""
    return round(1e3 * seconds, stats.MS_DIGITS)


@dataclass(frozen=True)
class NotMeasured:
    """Takes the place of figures that are missing: no request was answered, or perf_analyzer does not report them."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """The distribution of latencies: milliseconds from a request to its response, as the client saw them."""

    mean_ms: float = field(metadata=measured("mean", unit="ms", digits=3))
    p50_ms: float = field(metadata=measured("p50", unit="ms", digits=3))
    p90_ms: float = field(metadata=measured("p90", unit="ms", digits=3))
    p95_ms: float = field(metadata=measured("p95", unit="ms", digits=3))
    p99_ms: float = field(metadata=measured("p99", unit="ms", digits=3))
    max_ms: float | None = field(default=None, metadata=measured("max", unit="ms", digits=3))
    requests: int

    @classmethod
    def of_seconds(cls, seconds: Sequence[float]) -> Self:
        """Return the distribution of latencies that are given in seconds."""
        values = sorted(1e3 * each for each in seconds)
        shares = (0.5, 0.9, 0.95, 0.99)
        p50, p90, p95, p99 = (round(stats.percentile(values, share), stats.MS_DIGITS) for share in shares)
        return cls(
            mean_ms=round(fsum(values) / len(values), stats.MS_DIGITS),
            p50_ms=p50,
            p90_ms=p90,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=round(values[-1], stats.MS_DIGITS),
            requests=len(values),
        )


@dataclass(frozen=True)
class StreamTimes:
    """The times of answers in pieces: from the request to the first piece, and between two successive pieces.

    A piece of a generating model has one token, or a few where a single token is no whole character.
    """

    first_p50_ms: float = field(metadata=measured("first p50", unit="ms", digits=3))
    first_p95_ms: float = field(metadata=measured("first p95", unit="ms", digits=3))
    first_p99_ms: float
    between_p50_ms: float | None = field(metadata=measured("between p50", unit="ms", digits=3))
    """None where no answer has two pieces."""
    between_p95_ms: float | None = field(metadata=measured("between p95", unit="ms", digits=3))
    between_p99_ms: float | None
    pieces: int

    @classmethod
    def of_seconds(cls, firsts: Sequence[float], gaps: Sequence[float]) -> Self | None:
        """Return the times of streamed answers that are given in seconds; None without any."""
        if not firsts:
            return None
        fields: dict[str, Any] = {}
        for percent in (50, 95, 99):
            for name, seconds in (("first", firsts), ("between", gaps)):
                value = milliseconds(stats.percentile(seconds, percent / 100)) if seconds else None
                fields[f"{name}_p{percent}_ms"] = value
        return cls(**fields, pieces=len(firsts) + len(gaps))


@dataclass(frozen=True)
class ModelTimes:
    """The server's counters of one model; times are milliseconds per request to the model that the client calls.

    `rows` counts the rows of all requests, and `executions` counts how many times the model ran. Dynamic batching joins
    several requests into one run of the model.
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
        """The compute time per request: preparing the inputs, running the model and preparing the outputs."""
        return self.compute_input_ms + self.compute_infer_ms + self.compute_output_ms


@dataclass(frozen=True)
class Statistics:
    """The time of repeated requests in parts: the server's times of each model, and the rest of the client's time."""

    models: Mapping[str, ModelTimes]
    """The server's times by name of the model: first the called model, then the models that an ensemble runs."""
    client_ms: float = field(metadata=measured("as the client saw", unit="ms", digits=3))
    network_and_client_ms: float = field(metadata=measured("network and client", unit="ms", digits=3))


@dataclass(frozen=True)
class QueryFigures(TypedReport):
    """The latencies of a query: of its first requests, and of the repeated requests where the user asks for them."""

    first_ms: float = field(metadata=measured("first", unit="ms", digits=3))
    latency: Latencies | None = None
    statistics: Statistics | None = None


@dataclass(frozen=True)
class Errors:
    """The number and the share of failed requests, and the most frequent error messages with their counts."""

    count: int = field(metadata=measured("errors", digits=0))
    share: float
    messages: Mapping[str, int]


@dataclass(frozen=True)
class ClientFigures:
    """The CPU use and the delays of the client's own processes during a load.

    A client whose processes are too busy or wake up too late adds its own delays to the latencies.
    """

    processes: int
    busy: float
    """The share of a CPU that the busiest process used."""
    late_p95_ms: float
    """The 95th percentile of the delays with which the client's processes woke up, in milliseconds."""
    saturated: bool


@dataclass(frozen=True, kw_only=True)
class LoadFigures(TypedReport):
    """One point of a load test: the load on the server, and the measurements under that load."""

    concurrency: int | None = field(default=None, metadata=measured("clients", digits=0))
    """The number of concurrent clients in a closed loop; None in an open loop."""
    rate: float | None = field(default=None, metadata=significant("rate/s", digits=6))
    """The number of requests that start per second in an open loop; None in a closed loop."""
    by: str
    """The program that made the load: `recipe`, or perf_analyzer with its version."""
    throughput: float = field(metadata=measured("requests/s", digits=1))
    requests: int
    latency: Latencies | NotMeasured
    errors: Errors
    client: ClientFigures | NotMeasured
    tokens_per_second: float | None = field(default=None, metadata=measured("tokens/s", digits=1))
    """Generated tokens per second, of models that generate text."""
    stream: StreamTimes | None = None
    """The times of pieces, of models that answer in pieces."""
    server: Mapping[str, ModelTimes]
    """The server's times of each model; empty where the server has no statistics."""


@dataclass(frozen=True)
class Counters:
    """One model's counters on the server: requests, runs, rows, and times in nanoseconds, summed over all requests."""

    requests: int = 0
    failed: int = 0
    executions: int = 0
    rows: int = 0
    total: int = 0
    queue: int = 0
    compute_input: int = 0
    compute_infer: int = 0
    compute_output: int = 0

    def since(self, earlier: Counters) -> Counters:
        """Return the counters since `earlier`; nothing is subtracted where the server restarted, at zero."""
        if self.requests < earlier.requests:
            return self
        return Counters(*(getattr(self, name) - getattr(earlier, name) for name in self.__dataclass_fields__))

    def plus(self, other: Counters) -> Counters:
        """Return the sum of the counters `self` and `other`, field by field."""
        return Counters(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def per_request(self, requests: int) -> ModelTimes:
        """Return the times per request, in milliseconds, and the total numbers of requests, rows and runs."""
        count = max(requests, 1)
        times = {
            f"{part}_ms": round(getattr(self, part) / count / _NANOSECONDS_PER_MS, MS_DIGITS)
            for part in ("total", *PARTS)
        }
        return ModelTimes(self.requests, self.failed, self.rows, self.executions, **times)


def read(statistics: Iterable[Mapping[str, Any]]) -> dict[str, Counters]:
    """Return the counters of each model in Triton's statistics; all versions of a model are added up."""
    counters: dict[str, Counters] = {}
    for row in statistics:
        times = row.get("inference_stats") or {}
        version = Counters(
            requests=_number(times, "success", "count"),
            failed=_number(times, "fail", "count"),
            executions=int(row.get("execution_count") or 0),
            rows=int(row.get("inference_count") or 0),
            total=_number(times, "success", "ns"),
            **{part: _number(times, part, "ns") for part in PARTS},
        )
        counters[row["name"]] = counters.get(row["name"], Counters()).plus(version)
    return counters


def between(
    model: ModelMetadata, before: Mapping[str, Counters], after: Mapping[str, Counters]
) -> dict[str, ModelTimes]:
    """Return the times of `model` and of each model that `model` calls, per request to `model`; `model` comes first.

    For a model that runs twice in each request, the times of both runs are added up. No configuration lists the models
    that another model calls from its own code (business logic scripting, BLS). Where `model` is no ensemble, each model
    that ran between the two moments counts as called by `model`.
    """
    differences = {name: now.since(before.get(name, Counters())) for name, now in after.items()}
    names = [model.name, *model.composing_models]
    if not model.composing_models:
        names += sorted(name for name, each in differences.items() if each.requests and name not in names)
    requests = differences[model.name].requests if model.name in differences else 0
    return {name: differences[name].per_request(requests) for name in names if name in differences}


def _number(times: Mapping[str, Any], part: str, field: str) -> int:
    return int((times.get(part) or {}).get(field) or 0)
