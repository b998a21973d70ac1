"""Which nodes a build uses."""

from dataclasses import asdict
from types import SimpleNamespace

import pytest
from cluster_steps import Tell

from engine.cluster.machines import ClusterMachines
from engine.cluster.nodes import ClusterNode
from engine.cluster.survey import Survey, version
from engine.errors import UserError

REMOTE = "file:///r"
LOCKED = {"onnx": "1.23.2"}
T4, L4 = "T4 (sm_75)", "L4 (sm_89)"


class Nodes:
    """A cluster engine whose nodes answer surveys, and no more. Each has a version of onnx, and a remote."""

    shown = "a cluster"

    def __init__(self, **nodes):
        self.every = nodes
        self.versions = {}

    def nodes(self):
        return [ClusterNode(name, name, 1, 1 << 34) for name in self.every]

    def ask(self, nodes, question):
        surveys = {node.id: self._survey(*self.every[node.id]) for node in nodes}
        return {name: {**each, **self.versions.get(name, {})} for name, each in surveys.items()}

    def _survey(self, onnx, remote):
        return asdict(Survey(version(), remote, "", {}, {"onnx": onnx}, {}, {T4: "", L4: "no L4"}, {"": {}, T4: {}}))


def machines(nodes, locked=None, **more):
    step = Tell()
    job = SimpleNamespace(step=step, traits=SimpleNamespace(needs_hardware=False, exclusive=False))
    return ClusterMachines(nodes, [job], remote=REMOTE, locked=locked, **more)


def test_a_node_whose_tools_are_not_those_of_the_lock_runs_no_job():
    nodes = Nodes(right=("1.23.2", REMOTE), wrong=("1.24.0", REMOTE))
    assert {node.name for node in machines(nodes).nodes} == {"right", "wrong"}
    assert {node.name for node in machines(nodes, LOCKED).nodes} == {"right"}
    with pytest.raises(UserError) as error:
        machines(Nodes(wrong=("1.24.0", REMOTE)), LOCKED)
    assert error.value.facts == ("wrong: the node has onnx 1.24.0, and the lock 1.23.2",)


def test_a_lock_that_does_not_name_a_tool_says_nothing_about_it():
    assert len(machines(Nodes(one=("1.24.0", REMOTE)), {"torch": "2.13.0"}).nodes) == 1


def test_a_node_with_another_remote_runs_no_job():
    with pytest.raises(UserError) as error:
        machines(Nodes(one=("1.23.2", "file:///other")))
    assert error.value.facts == (f"one: the node has the remote file:///other, not {REMOTE}",)


def test_a_node_of_another_version_ends_the_build_before_it_begins_though_other_nodes_could_run_it():
    nodes = Nodes(right=("1.23.2", REMOTE), old=("1.23.2", REMOTE), newer=("1.23.2", REMOTE))
    nodes.versions = {
        "old": {"version": "recipe 0.0.9 on Python 3.11.9"},
        "newer": {"version": "recipe 99.0 on Python 3.14.1", "a field of that version": 1},
    }
    with pytest.raises(UserError, match="2 nodes have another version of recipe or Python") as error:
        machines(nodes)
    assert error.value.facts == (
        "node old: recipe 0.0.9 on Python 3.11.9",
        "node newer: recipe 99.0 on Python 3.14.1",
        f"this machine: {version()}",
    )
    assert "install the same versions" in error.value.hint


def test_a_node_of_another_version_that_comes_during_a_build_runs_no_job_and_is_named():
    nodes, notices = Nodes(right=("1.23.2", REMOTE)), []
    known = machines(nodes, notice=notices.append)
    nodes.every["late"] = ("1.23.2", REMOTE)
    nodes.versions["late"] = {"version": "recipe 0.0.9 on Python 3.11.9"}
    known.look()
    known.look()
    assert [node.name for node in known.nodes] == ["right"]
    there = "the node has recipe 0.0.9 on Python 3.11.9"
    assert notices == [f"node late came and is not used: {there}, and this machine {version()}"]


def job_for(hardware):
    step = SimpleNamespace(hardware=lambda: hardware)
    return SimpleNamespace(step=step, traits=SimpleNamespace(needs_hardware=True, exclusive=False))


def test_a_node_that_came_just_before_another_was_lost_takes_its_jobs():
    nodes = Nodes(first=("1.23.2", REMOTE))
    known = machines(nodes)
    assert known.waits_for(job_for(T4)) is None
    nodes.every = {"second": ("1.23.2", REMOTE)}
    known.leave_out(next(iter(known.nodes)), "it was lost")
    assert known.waits_for(job_for(T4)) is None
    assert [node.name for node in known.nodes] == ["second"]


def test_the_cluster_is_not_asked_for_each_job_whose_hardware_every_node_lacks(monkeypatch):
    nodes, questions = Nodes(one=("1.23.2", REMOTE)), []
    known = machines(nodes)
    monkeypatch.setattr(nodes, "nodes", lambda: questions.append("") or [])
    assert [known.waits_for(job_for(L4)), known.waits_for(job_for(L4))] == [L4, L4]
    assert not questions
