"""What the builder makes of the answer of a node that would run a job under another key."""

from types import SimpleNamespace

import pytest

from engine.builder.executors.executor import DisplacedError
from engine.cluster.executor import ClusterExecutor
from engine.cluster.nodes import ClusterNode
from engine.cluster.orders import NodeAnswer
from engine.cluster.survey import Survey, version


def outcome(*differs):
    """Return what comes of an answer with rows that differ, and the reasons for which the node is left out."""
    node = ClusterNode("t4-1", "t4-1", 1, 100, survey=Survey(version(), "", "", {}, {}, {}, {}, {}))
    job = SimpleNamespace(name="prune", traits=SimpleNamespace(kind="my_package.prune:Prune"))
    run = SimpleNamespace(order=SimpleNamespace(job=job))
    executor, reasons = object.__new__(ClusterExecutor), []
    executor._machines = SimpleNamespace(leave_out=lambda _, reason: reasons.append(reason))
    return executor._outcome(run, node, NodeAnswer(differs=differs).encode()), reasons


def test_a_node_with_other_code_for_a_step_fails_the_job_by_name():
    ended, reasons = outcome(("code", "a" * 32, "b" * 32), ("tools.onnx", "1.23.2", "1.24.0"))
    assert not isinstance(ended.error, DisplacedError)
    assert ended.error.what == "node t4-1 has other code for 'prune' than this machine"
    assert ended.error.facts == (
        f"node t4-1: {version()}, code {'b' * 32}",
        f"this machine: {version()}, code {'a' * 32}",
        "the step is my_package.prune:Prune",
    )
    assert len(reasons) == 1


def test_a_job_whose_node_has_other_facts_now_goes_elsewhere():
    ended, reasons = outcome(("tools.onnx", "1.23.2", "1.24.0"))
    with pytest.raises(DisplacedError, match=r"tools\.onnx is 1\.24\.0, not 1\.23\.2"):
        raise ended.error
    assert len(reasons) == 1
