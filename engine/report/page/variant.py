"""A variant on the page: its part of the JSON, and what the pictures and tables need of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
from markupsafe import Markup

from engine.builder.job import Job
from engine.kit.bench.report import title_of
from engine.report.graph import GraphJob
from engine.report.overview import VariantOverview
from engine.report.page import plan
from engine.report.page.values import Value
from engine.step import Section, Step
from engine.steps.fuse import FuseReport

_NEWEST = 20
"""The most builds of a variant that the page lists."""
_LATENCIES = "bench"
"""The field of `recipe show --json` with the rows of latencies."""


@dataclass(frozen=True)
class PageVariant:
    """What a template needs of a variant."""

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
    def bench(self) -> list[list[Value]]:
        """The rows of latencies, in a list for each shape and way of calling."""
        groups: dict[str, list[Value]] = {}
        for row in self.shown[_LATENCIES]:
            groups.setdefault(place(row), []).append(row)
        return list(groups.values())

    @property
    def builds(self) -> list[Value]:
        """The builds of the variant, the newest first."""
        return list(reversed(list(self.past["builds"])))[:_NEWEST]

    @property
    def latency(self) -> Value:
        """The first row of latencies of the built model; None without one."""
        return next((row for row in self.shown[_LATENCIES] if row["ours"].raw), self.shown["none"])

    @property
    def steps(self) -> list[Value]:
        """The jobs in `recipe show --json`, in the order of `jobs`."""
        return [self.step(job.name) for job in self.jobs]

    @property
    def provenance(self) -> list[Value]:
        """The jobs in `recipe show --json` that have an artifact."""
        return [step for step in self.shown["steps"] if step["artifact"]]

    @property
    def plan(self) -> Markup:
        """The plan as a picture."""
        return plan.picture(self.jobs, [step["seconds"] for step in self.steps])

    def step(self, name: str) -> Value:
        """Return the job in `recipe show --json`; None for a job that is not there."""
        return next((step for step in self.shown["steps"] if step["job"].raw == name), self.shown["none"])

    @property
    def fused(self) -> Value:
        """The report of the step that fuses operators; None without one."""
        return self._report_of(lambda step: step.report is FuseReport)

    @property
    def lowered(self) -> Value:
        """The report of the step that lowers the precision; None without one."""
        return self._report_of(lambda step: step.section is Section.PRECISION)

    def _report_of(self, chosen: Callable[[Step], bool]) -> Value:
        return next((self.step(job.name)["report"] for job in self.plan_jobs if chosen(job.step)), self.shown["none"])

    @property
    def throughput(self) -> Mapping[str, list[tuple[int, Value]]]:
        """For each runtime the batches and medians of the rows that differ in nothing else; {} with one batch."""
        lines: dict[str, dict[str, list[tuple[int, Value]]]] = {}
        for row in self.shown[_LATENCIES]:
            shape = {name: each.raw for name, each in row["shape"].items()}
            batch = shape.pop("batch", None)
            if isinstance(batch, int):
                rest = f"{shape} {row['via'].raw} {row['new_tokens'].raw}"
                lines.setdefault(rest, {}).setdefault(title(row), []).append((batch, row["p50_ms"]))
        longest = max(lines.values(), key=lambda each: max(map(len, each.values())), default={})
        return {name: sorted(line, key=lambda each: each[0]) for name, line in longest.items() if len(line) > 1}

    @property
    def history(self) -> Mapping[str, list[tuple[float, Value]]]:
        """For each place of a latency the times of the builds and the latencies; {} if nothing was measured twice."""
        lines: dict[str, list[tuple[float, Value]]] = {}
        last: dict[str, object] = {}
        for build in self.past["builds"]:
            for latency in build["figures"]["latencies"]:
                name = latency["place"].text
                if last.get(name) != latency.raw:  # a build that did not measure has the figures of an earlier one
                    lines.setdefault(name, []).append((build["at"].number or 0.0, latency))
                last[name] = latency.raw
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
