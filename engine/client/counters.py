"""Counters: the server's own statistics of requests and times, between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.client.figures import ModelTimes
from engine.client.model_metadata import ModelMetadata
from engine.kit.bench.stats import MS_DIGITS

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
"""The parts of a request's time that Triton counts.

Source: "Statistics Extension" of Triton's documentation: waiting for a batch, preparing the inputs, running the model,
preparing the outputs. Triton's counter `success` is the whole time from a request's arrival to its response.
"""
_NANOSECONDS_PER_MS = 1e6


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
        """Return the counters of the time since the counters `earlier` were read.

        Where the server restarted after `earlier` was read, the server's counters began again at zero, and nothing is
        subtracted.
        """
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
