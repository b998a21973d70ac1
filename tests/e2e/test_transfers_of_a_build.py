"""A build that moves a large artifact shows it on a terminal and in JSON, and in a pipe prints as without a remote."""

import json

import graphs
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from remote_servers import Faulty
from team_machine import Machine

pytestmark = pytest.mark.slow

SIDE = 2300
"""The model is a matrix of 21 MB: two blobs."""
RATE = 8_000_000
RECIPE = """\
name: net
model: {source: model.onnx}
profiles: [{batch: [1, 2, 4]}]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "r.yaml").write_text(RECIPE)
    weight = np.random.default_rng(1).standard_normal((SIDE, SIDE), np.float32)
    ends = [("x", graphs.FLOAT, ["batch", SIDE])], [("y", graphs.FLOAT, ["batch", SIDE])]
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    onnx.save(graphs.graph([product], *ends, [numpy_helper.from_array(weight, "w")]), folder / "model.onnx")
    return folder


@pytest.fixture(scope="module")
def slowed(nginx):
    """A web server that carries 8 MB in a second."""
    faulty = Faulty(nginx.port)
    faulty.mode = f"rate {RATE}"
    yield faulty
    faulty.stop()


@pytest.fixture(scope="module")
def pushed(files, nginx, slowed, tmp_path_factory):
    """A machine that has built and pushed, and what it printed as JSON."""
    machine = Machine(tmp_path_factory.mktemp("first") / "project", files)
    machine.uses(nginx.url("transfers", port=slowed.port))
    machine.environment["RECIPE_TRUST"] = machine.keygen()
    done = machine("build", "r.yaml", "--json", expect=0)
    assert "transfer" not in done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    [note] = [event["text"] for event in events if event["event"] == "note" and "remote" in event["text"]]
    assert "records went there" in note
    return machine, events


@pytest.fixture
def second(files, nginx, pushed, slowed, tmp_path):
    machine = Machine(tmp_path / "second", files)
    return machine.uses(nginx.url("transfers", writes=False, port=slowed.port), **trusting(pushed))


def trusting(pushed):
    return {"RECIPE_TRUST": pushed[0].environment["RECIPE_TRUST"]}


def transfers(events, direction):
    return [event for event in events if event["event"] == "transfer" and event["direction"] == direction]


def check(events, seconds):
    """Check the events about one transfer of a build that took so long."""
    assert 2 <= len(events) <= seconds + 1, events
    assert all(event["bytes"] <= event["of"] for event in events)
    last = [event for event in events if not event["jobs"]]
    assert last
    assert all(event["bytes"] == event["of"] for event in last)
    assert max(event["of"] for event in events) > 20e6
    assert any(0 < event["bytes"] < event["of"] for event in events if event["jobs"])


def test_a_push_is_a_few_events(pushed):
    events = pushed[1]
    check(transfers(events, "out"), events[-1]["seconds"])
    assert transfers(events, "in") == []
    assert events[-1]["event"] == "build"


def test_a_terminal_shows_what_moves(second):
    del second.environment["CI"]
    second.environment |= {"TERM": "xterm", "COLUMNS": "150"}
    shown, code = second.on_terminal("build", "r.yaml")
    assert code == 0, shown
    assert "package from http://127.0.0.1" in shown
    assert "/21.2 MB" in shown
    assert "up to date" in shown
