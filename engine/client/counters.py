"""Counters: what a server says of its own time, between two moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.client.entry import Entry
from engine.client.figures import ModelTimes

PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
"""What Triton counts of a request's time.

Source: "Statistics Extension" of Triton's documentation: waiting to be put into a batch, getting the inputs ready,
running the model, getting the outputs ready; `success` is all of it, from the request's arrival to its answer.
"""


@dataclass(frozen=True)
class Counters:
    """Of one model: requests answered and refused, and nanoseconds of all requests together."""

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
        """Return what came since. A server that was started anew in between counts from zero."""
        if self.requests < earlier.requests:
            return self
        return Counters(*(getattr(self, name) - getattr(earlier, name) for name in self.__dataclass_fields__))

    def per_request(self, asked: int) -> ModelTimes:
        """Return milliseconds by part of one of `asked` requests, and how many there were."""
        count = max(asked, 1)
        times = {f"{part}_ms": round(getattr(self, part) / count / 1e6, 4) for part in ("total", *PARTS)}
        return ModelTimes(self.requests, self.failed, self.rows, self.executions, **times)


def read(models: Iterable[Mapping[str, Any]]) -> dict[str, Counters]:
    """Return the counters by model, its versions together, of the JSON that Triton gives."""
    found: dict[str, Counters] = {}
    for said in models:
        spent = said.get("inference_stats") or {}
        own = Counters(
            requests=_of(spent, "success", "count"),
            failed=_of(spent, "fail", "count"),
            executions=int(said.get("execution_count") or 0),
            rows=int(said.get("inference_count") or 0),
            total=_of(spent, "success", "ns"),
            **{part: _of(spent, part, "ns") for part in PARTS},
        )
        before = found.get(said["name"], Counters())
        found[said["name"]] = Counters(
            *(getattr(before, name) + getattr(own, name) for name in Counters.__dataclass_fields__)
        )
    return found


def between(entry: Entry, before: Mapping[str, Counters], after: Mapping[str, Counters]) -> dict[str, ModelTimes]:
    """Return what a request to the entry cost in it and in each model that it consists of, the entry first.

    The times of a part that is asked twice for each request are those of both. A model that other models call by
    themselves (BLS) is no part that a configuration tells: it counts where it was asked in that time.
    """
    spent = {name: now.since(before.get(name, Counters())) for name, now in after.items()}
    names = [entry.name, *entry.parts]
    if not entry.parts:
        names += sorted(name for name, each in spent.items() if each.requests and name not in names)
    asked = spent[entry.name].requests if entry.name in spent else 0
    return {name: spent[name].per_request(asked) for name in names if name in spent}


def _of(spent: Mapping[str, Any], part: str, field: str) -> int:
    return int((spent.get(part) or {}).get(field) or 0)
