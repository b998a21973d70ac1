"""Of all builders in a cluster, one has the right to a key; and a cluster that goes ends a build with one error."""

from types import SimpleNamespace

import pytest

from engine.builder.executors.executor import Demand
from engine.cluster.nodes import ClusterNode
from engine.cluster.ray_engine import ClaimTable, RayEngine
from engine.errors import UserError


def test_one_builder_has_a_key_until_it_gives_it_back():
    table = ClaimTable({"a", "b"}.__contains__)
    assert table.claim("k", "a") == ""
    assert table.claim("k", "a") == ""
    assert table.claim("k", "b") == "a"
    table.release("k", "b")
    assert table.claim("k", "b") == "a"
    table.release("k", "a")
    assert table.claim("k", "b") == ""


def test_the_keys_of_a_builder_that_has_gone_are_free():
    builders = {"a", "b", "c"}
    table = ClaimTable(builders.__contains__)
    table.claim("k", "a")
    table.claim("l", "b")
    builders.remove("a")
    assert (table.claim("k", "c"), table.claim("l", "c")) == ("", "b")


NODE = ClusterNode("a", "a", 1, 100, 0)


class RayError(Exception):
    """The base class of Ray's errors."""


class RaySystemError(RayError):
    """Ray's error for a connection that was lost."""


def engine(error):
    """Return an engine whose client of Ray raises `error`, without a connection to a cluster."""

    def lost(*_arguments, **_named):
        raise error

    remote = SimpleNamespace(remote=lost)
    self = object.__new__(RayEngine)
    exceptions = SimpleNamespace(RayError=RayError)
    self._ray = SimpleNamespace(nodes=lost, wait=lost, get=lost, exceptions=exceptions)
    self.shown, self.lost_cluster, self.builder = "ray://head:10001", RaySystemError, "me"
    self._on = lambda *_arguments, **_named: remote
    self._survey = self._task = remote
    self._claims = SimpleNamespace(claim=remote)
    self._head = SimpleNamespace(look=lambda: None)
    self._journal, self._tasks_on, self._runs = None, {}, {}
    return self


@pytest.mark.parametrize("error", [ConnectionError("no route"), RaySystemError("no route")])
@pytest.mark.parametrize(
    "question",
    [
        lambda engine: engine.nodes(),
        lambda engine: engine.ask([NODE], {}),
        lambda engine: engine.submit("run", [NODE], Demand("", 1, 1, alone=False), b""),
        lambda engine: engine.claim("key"),
    ],
)
def test_a_question_to_a_cluster_that_has_gone_ends_with_one_error(question, error):
    with pytest.raises(UserError, match=r"the cluster ray://head:10001 has gone\n  no route"):
        question(engine(error))


def test_an_error_of_the_claim_table_alone_does_not_end_a_build():
    assert engine(RayError("the actor died")).claim("key") == ""


def test_the_ends_of_runs_are_polled_and_without_runs_nothing_is_asked():
    self = engine(AssertionError("asked for nothing"))
    self._news = list
    assert self.poll(0) == []
    asked = []
    self._ray.wait = lambda runs, **options: (asked.append(options), (runs, []))[1]
    self._answer = lambda run: f"end of {run}"
    self._runs = {"one": "k"}
    assert self.poll(5) == ["end of one"]
    self._runs = {"one": "k", "two": "l"}
    assert self.poll(5) == ["end of one", "end of two"]
    assert asked == [{"timeout": 5}, {"timeout": 5}, {"num_returns": 2, "timeout": 0}]


@pytest.mark.parametrize("question", [lambda engine: engine.nodes(), lambda engine: engine.ask([NODE], {})])
def test_a_silent_head_ends_a_build_and_ray_waits_for_it_no_longer(question):
    lost = engine(RayError("nobody may ask Ray to leave a cluster that has gone"))
    lost._head.look, lost._is_closed, lost.has_lost_cluster = silent, False, False
    lost._has_answers = False
    lost._on = lambda *_arguments, **_named: SimpleNamespace(remote=lambda _question: "ref")
    lost._ray.wait, lost._ray.shutdown = (lambda _refs, **_named: ([], [])), silent
    with pytest.raises(UserError, match=r"the cluster ray://head:10001 has gone\n  the head is silent"):
        question(lost)
    lost.close()


def silent():
    raise ConnectionError("the head is silent")
