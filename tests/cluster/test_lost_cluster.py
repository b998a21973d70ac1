"""A cluster that goes while a builder talks to it: each question to it ends with one error that says so."""

import threading
from types import SimpleNamespace

import pytest

from engine.cluster.nodes import ClusterNode, Lane
from engine.cluster.ray_engine import RayEngine
from engine.errors import UserError

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
    self._claims = SimpleNamespace(claim=remote, hear=remote)
    self._journal, self._tasks_on, self._runs = None, {}, {}
    self._released, self._telling, self._ended = ["key"], threading.Lock(), threading.Event()
    return self


@pytest.mark.parametrize("error", [ConnectionError("no route"), RaySystemError("no route")])
@pytest.mark.parametrize(
    "question",
    [
        lambda engine: engine.nodes(),
        lambda engine: engine.ask([NODE], {}),
        lambda engine: engine.submit("run", [NODE], Lane("", 1, 1, alone=False), b""),
        lambda engine: engine.claim("key"),
    ],
)
def test_a_question_to_a_cluster_that_has_gone_ends_with_one_error(question, error):
    with pytest.raises(UserError, match=r"the cluster ray://head:10001 has gone\n  no route"):
        question(engine(error))


def test_a_builder_that_waits_for_other_builders_hears_that_the_cluster_has_gone():
    with pytest.raises(UserError, match="has gone"):
        engine(ConnectionError("no route")).poll(0.0)


def test_an_error_of_the_claim_table_alone_does_not_end_a_build():
    assert engine(RayError("the actor died")).claim("key") == ""
