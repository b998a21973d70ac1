"""The plan as a graph of networkx: what jobs need, and what a change of a job can change."""

# networkx takes a quarter of a second to import. Who asks the graph imports this module there: the order of a plan, a
# build that is up to date and a build from a stored plan need no graph.

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx

from engine.builder.job import Job

JobName = tuple[str, str]
"""The names of a variant and of its job."""


def of(jobs: Iterable[Job]) -> nx.DiGraph[JobName]:
    """Return the graph of the jobs of variants, in which an edge leads to a job from each job that must pass before it.

    The attribute `inputs` of an edge has the parameters that pass the output on; a gate has none.
    """
    graph: nx.DiGraph[JobName] = nx.DiGraph()
    for job in jobs:
        graph.add_node(_name(job))
        for earlier in job.earlier:
            inputs = [parameter for parameter, maker in job.needs.items() if maker == earlier]
            graph.add_edge((job.recipe, earlier), _name(job), inputs=inputs)
    return graph


def up_to(jobs: Sequence[Job], last: Iterable[str]) -> tuple[Job, ...]:
    """Return the jobs that `last` names, or whose steps it names, and all that they need, in their order."""
    graph, named = of(jobs), set(last)
    ends = {_name(job) for job in jobs if named & {job.name, job.step_name}}
    needed = ends.union(*(nx.ancestors(graph, end) for end in ends))
    return tuple(job for job in jobs if _name(job) in needed)


def changed_by(jobs: Sequence[Job], first: Iterable[Job]) -> set[JobName]:
    """Return the jobs in `first` and all jobs whose inputs are made from their outputs: a change can reach no other."""
    graph = of(jobs)
    graph.remove_edges_from([edge for edge, inputs in nx.get_edge_attributes(graph, "inputs").items() if not inputs])
    starts = {_name(job) for job in first}
    return starts.union(*(nx.descendants(graph, start) for start in starts))


def _name(job: Job) -> JobName:
    return job.recipe, job.name
