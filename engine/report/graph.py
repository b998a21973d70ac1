"""Graph: the jobs of recipes and what each reads, as text, for Mermaid or for Graphviz."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.builder.findings import Finding
from engine.text import lists


@dataclass
class GraphJob:
    """A job of one or several variants: variants whose jobs have equal steps, options and inputs share it."""

    name: str
    state: str
    earlier: tuple[int, ...]
    """The numbers of the jobs that must pass before this one."""
    variants: list[str] = field(default_factory=list)


def jobs(findings: Iterable[Finding]) -> list[GraphJob]:
    """Return the jobs of all variants, each once, in an order in which they can run."""
    numbers: dict[str, int] = {}
    listed: list[GraphJob] = []
    by_variant: dict[tuple[str, str], int] = {}
    for finding in findings:
        job = finding.job
        earlier = tuple(by_variant[job.recipe, name] for name in job.earlier)
        inputs = {name: by_variant[job.recipe, maker] for name, maker in job.needs.items()}
        traits = job.traits
        sources = {name: [source.uri, source.revision, source.part] for name, source in traits.sources.items()}
        same = json.dumps([job.name, traits.kind, traits.options, inputs, sources, earlier], sort_keys=True)
        if same not in numbers:
            numbers[same] = len(listed)
            listed.append(GraphJob(job.name, finding.state, earlier))
        by_variant[job.recipe, job.name] = numbers[same]
        listed[numbers[same]].variants.append(job.recipe)
    return listed


def as_text(listed: Sequence[GraphJob]) -> Iterator[str]:
    """Yield a row for each job: its state, its name, the jobs before it, and the variants that share it."""
    from engine.report import grid

    yield from grid.lines([(job.state, _called(job, listed), _before(job, listed)) for job in listed])


def as_mermaid(listed: Sequence[GraphJob]) -> Iterator[str]:
    """Yield the lines of a flowchart of Mermaid, which GitHub and GitLab draw in Markdown."""
    yield "flowchart TD"
    for number, job in enumerate(listed):
        yield f'  j{number}["{_called(job, listed)}<br/>{job.state}"]:::{_class(job)}'
        yield from (f"  j{each} --> j{number}" for each in job.earlier)
    yield "  classDef done fill:#d5f0dc,stroke:#2f8f4e,color:#123"
    yield "  classDef open fill:#fdeccb,stroke:#b57a12,color:#123"


def as_dot(listed: Sequence[GraphJob]) -> Iterator[str]:
    """Yield the lines of a graph in DOT, the language of Graphviz."""
    yield "digraph recipe {"
    yield "  rankdir=LR; node [shape=box, style=filled];"
    for number, job in enumerate(listed):
        color = {"done": "#d5f0dc", "open": "#fdeccb"}[_class(job)]
        label = json.dumps(f"{_called(job, listed)}\n{job.state}")
        yield f'  j{number} [label={label}, fillcolor="{color}"];'
        yield from (f"  j{each} -> j{number};" for each in job.earlier)
    yield "}"


FORMATS: Mapping[str, Callable[[Sequence[GraphJob]], Iterator[str]]] = {
    "text": as_text,
    "mermaid": as_mermaid,
    "dot": as_dot,
}


def _called(job: GraphJob, listed: Sequence[GraphJob]) -> str:
    """Return a job's name, with its variants where there are several jobs of that name or several variants."""
    variants = {name for each in listed for name in each.variants}
    if len(variants) == 1:
        return job.name
    many = len(job.variants) > 1
    return f"{job.name} ({lists.counted(len(job.variants), 'variant') if many else job.variants[0]})"


def _before(job: GraphJob, listed: Sequence[GraphJob]) -> str:
    names = dict.fromkeys(listed[number].name for number in job.earlier)
    return f"<- {', '.join(names)}" if names else ""


def _class(job: GraphJob) -> str:
    return "done" if job.state == "cached" else "open"
