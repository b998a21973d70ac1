"""Graph: the jobs of recipes and what each reads, as text, for Mermaid or for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import networkx as nx

from engine.builder import plan_graph
from engine.builder.why import Finding, numbered_twins
from engine.text import lists


@dataclass(frozen=True, eq=False)
class GraphJob:
    """A job of one or several variants: variants whose jobs have equal steps, options and inputs share it."""

    name: str
    state: str
    reads: tuple[str, ...] = ()
    """The names of the jobs that must pass before this one."""
    variants: list[str] = field(default_factory=list)


def of(findings: Sequence[Finding], *, only: Collection[plan_graph.JobName] | None = None) -> nx.DiGraph[GraphJob]:
    """Return the jobs of all variants, each once, in an order in which they can run; with `only`, these jobs."""
    drawn: dict[int, GraphJob] = {}
    by_name: dict[plan_graph.JobName, GraphJob] = {}
    numbers = numbered_twins(findings)
    for finding in findings:
        job = finding.job
        name = job.recipe, job.name
        twin = drawn.setdefault(numbers[name], GraphJob(job.name, finding.state, job.earlier))
        twin.variants.append(job.recipe)
        by_name[name] = twin
    merged = nx.relabel_nodes(plan_graph.of(finding.job for finding in findings), by_name)
    if only is not None:
        merged.remove_nodes_from(set(drawn.values()) - {by_name[name] for name in only})
    return cast("nx.DiGraph[GraphJob]", merged)


def drawn_edges(plan: nx.DiGraph[GraphJob]) -> dict[GraphJob, list[GraphJob]]:
    """Return for each job the jobs from which a line leads to it: a line that other lines imply is left out."""
    reduced = nx.transitive_reduction(plan)
    return {job: [earlier for earlier in plan.predecessors(job) if reduced.has_edge(earlier, job)] for job in plan}


def as_text(plan: nx.DiGraph[GraphJob]) -> Iterator[str]:
    """Yield a row for each job: its state, its name, the jobs before it, and the variants that share it."""
    from engine.report import grid

    before = (f"<- {', '.join(job.reads)}" if job.reads else "" for job in plan)
    yield from grid.lines([(job.state, _called(job, plan), reads) for job, reads in zip(plan, before, strict=True)])


def as_mermaid(plan: nx.DiGraph[GraphJob]) -> Iterator[str]:
    """Yield the lines of a flowchart of Mermaid, which GitHub and GitLab draw in Markdown."""
    yield "flowchart TD"
    for number, job, earlier in _numbered(plan):
        yield f'  j{number}["{_called(job, plan)}<br/>{job.state}"]:::{_class(job)}'
        yield from (f"  j{each} --> j{number}" for each in earlier)
    yield "  classDef done fill:#d5f0dc,stroke:#2f8f4e,color:#123"
    yield "  classDef open fill:#fdeccb,stroke:#b57a12,color:#123"


def as_dot(plan: nx.DiGraph[GraphJob]) -> Iterator[str]:
    """Yield the lines of a graph in DOT, the language of Graphviz."""
    yield "digraph recipe {"
    yield "  rankdir=LR; node [shape=box, style=filled];"
    for number, job, earlier in _numbered(plan):
        color = {"done": "#d5f0dc", "open": "#fdeccb"}[_class(job)]
        label = json.dumps(f"{_called(job, plan)}\n{job.state}")
        yield f'  j{number} [label={label}, fillcolor="{color}"];'
        yield from (f"  j{each} -> j{number};" for each in earlier)
    yield "}"


FORMATS: Mapping[str, Callable[[nx.DiGraph[GraphJob]], Iterator[str]]] = {
    "text": as_text,
    "mermaid": as_mermaid,
    "dot": as_dot,
}


def _numbered(plan: nx.DiGraph[GraphJob]) -> Iterator[tuple[int, GraphJob, list[int]]]:
    """Yield for each job its number, the job, and the numbers of the jobs from which an arrow leads to it."""
    numbers = {job: number for number, job in enumerate(plan)}
    for job, edges in drawn_edges(plan).items():
        yield numbers[job], job, [numbers[earlier] for earlier in edges]


def _called(job: GraphJob, plan: nx.DiGraph[GraphJob]) -> str:
    """Return a job's name, with its variants where there are several jobs of that name or several variants."""
    variants = {name for each in plan for name in each.variants}
    if len(variants) == 1:
        return job.name
    many = len(job.variants) > 1
    return f"{job.name} ({lists.counted(len(job.variants), 'variant') if many else job.variants[0]})"


def _class(job: GraphJob) -> str:
    return "done" if job.state == "cached" else "open"
