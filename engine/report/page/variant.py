"""A variant on the page: what the template, the pictures and the tables show of its JSON, by subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import networkx as nx
from markupsafe import Markup

from engine.builder.job import Job
from engine.kit.bench.report import title_of
from engine.report.graph import GraphJob
from engine.report.overview import VariantOverview
from engine.report.page import plan
from engine.report.page.values import NOTHING, Value
from engine.step import Section, Step
from engine.steps.fuse import FuseReport

_LATENCIES = "bench"
"""The field of `recipe show --json` with the rows of latencies."""
_NEWEST = 20
"""The most builds of a variant that the page lists."""


@dataclass(frozen=True)
class PageVariant:
    """A variant, as its template takes it: first its measured rows, then its jobs, then its builds over time."""

    overview: VariantOverview
    shown: Value
    """The variant in `recipe show --json`."""
    past: Value
    """The variant in `recipe history --json`."""
    jobs: nx.DiGraph[GraphJob]
    anchor: str
    plan_jobs: Sequence[Job]
    precision: str
    """How many operators reached the recipe's precision, as a line; empty for fp32."""

    @property
    def rows(self) -> list[Value]:
        """The rows of latencies, in the order of the measurement."""
        return list(self.shown[_LATENCIES])

    @property
    def bench(self) -> list[list[Value]]:
        """The rows of latencies, in a list for each shape and way of calling."""
        by_place: dict[str, list[Value]] = {}
        for row in self.rows:
            by_place.setdefault(place(row), []).append(row)
        return list(by_place.values())

    @property
    def latency(self) -> Value:
        """The first row of the built model; `NOTHING` if it was not measured."""
        return next((row for row in self.rows if row["ours"].raw), NOTHING)

    @property
    def throughput(self) -> Mapping[str, list[tuple[int, Value]]]:
        """Each runtime's medians by batch, of rows alike in all else; {} where there is one batch."""
        groups: dict[str, dict[str, list[tuple[int, Value]]]] = {}
        for row in self.rows:
            batch = row["shape"]["batch"].raw
            if isinstance(batch, int):
                shape = {name: extent.raw for name, extent in row["shape"].items() if name != "batch"}
                runtimes = groups.setdefault(f"{shape} {row['via'].raw} {row['new_tokens'].raw}", {})
                runtimes.setdefault(title(row), []).append((batch, row["p50_ms"]))
        largest = max(groups.values(), key=lambda runtimes: max(map(len, runtimes.values())), default={})
        return {runtime: sorted(line, key=itemgetter(0)) for runtime, line in largest.items() if len(line) > 1}

    @property
    def plan(self) -> Markup:
        """The plan as a picture."""
        return plan.picture(self.jobs, [step["seconds"] for step in self.steps])

    @property
    def steps(self) -> list[Value]:
        """The jobs in `recipe show --json`, in the order of `jobs`."""
        return [self._step(job.name) for job in self.jobs]

    @property
    def provenance(self) -> list[Value]:
        """The jobs in `recipe show --json` that have an artifact."""
        return [step for step in self.shown["steps"] if step["artifact"]]

    @property
    def fused(self) -> Value:
        """The report of the step that fuses operators; `NOTHING` without one."""
        return self._report_of(lambda step: step.report is FuseReport)

    @property
    def lowered(self) -> Value:
        """The report of the step that lowers the precision; `NOTHING` without one."""
        return self._report_of(lambda step: step.section is Section.PRECISION)

    def _report_of(self, chosen: Callable[[Step], bool]) -> Value:
        return next((self._step(job.name)["report"] for job in self.plan_jobs if chosen(job.step)), NOTHING)

    def _step(self, name: str) -> Value:
        return next((step for step in self.shown["steps"] if step["job"].raw == name), NOTHING)

    @property
    def builds(self) -> list[Value]:
        """The builds of the variant, the newest first."""
        return list(reversed(list(self.past["builds"])))[:_NEWEST]

    @property
    def history(self) -> Mapping[str, list[tuple[float, Value]]]:
        """For each place, the times of builds and latencies, repeated ones once; {} if none was measured twice."""
        lines: dict[str, list[tuple[float, Value]]] = {}
        for build in self.past["builds"]:
            for latency in build["figures"]["latencies"]:
                line = lines.setdefault(latency["place"].text, [])
                if not line or line[-1][1].raw != latency.raw:
                    line.append((build["at"].number or 0.0, latency))
        return {name: line for name, line in lines.items() if len(line) > 1}


def title(row: Value) -> str:
    """Return the name of the model of a row of latencies."""
    return title_of(row["runtime"].text, ours=row["ours"].raw is True)


def place(row: Value) -> str:
    """Return the shape and the way of calling of a row of latencies, as text."""
    shape = " x ".join(f"{name} {extent.raw}" for name, extent in row["shape"].items()) or "the model's own shape"
    via = "" if row["via"].raw == "in-process" else f" via {row['via'].raw}"
    tokens = "" if row["new_tokens"].raw is None else f" + {row['new_tokens'].raw} tokens"
    samples = f" in {row['samples']['order'].raw} order" if row["samples"] else ""
    return f"{shape}{samples}{via}{tokens}"
