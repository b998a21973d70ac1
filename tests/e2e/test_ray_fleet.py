"""The shipped matrix of GPUs on a real Ray cluster, whose nodes declare a T4 and an L4, while machines are killed.

The GPUs of the nodes and their TensorRT are fakes. TensorRT-RTX is real: it needs no GPU to build. So are the weights.
"""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import user_caches
import working_folders
from fake_t4 import FakeL4, FakeT4
from program import Program
from ray_cluster import RayCluster

from engine.builder import registry

pytestmark = [pytest.mark.slow, pytest.mark.whole]

RECIPES = Path(__file__).parent.parent.parent / "recipes"
SHIPPED = "10.11.0.33"
"""The version of TensorRT that the shipped recipes name."""
NATIVE, RTX = "recipes/minilm_gpus.yaml", "recipes/minilm_rtx.yaml"
CHOSEN = ("--only", "precision=fp16", "--only", "target.device=T4", "--only", "target.device=L4", "--to", "trt-build")
BEFORE = ("fetch", "export", "reference", "shape-infer", "quantize", "validate-onnx", "trt-prepare")


class Fleet:
    """A head, nodes with a fake GPU each, and laptops without one. They share a remote."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "remote").mkdir(parents=True)
        self.remote = f"file://{folder / 'remote'}"
        self.ray = RayCluster()

    def add(self, name, kind, label):
        machine = kind(project_in(self.folder / name), self.folder / f"machine-{name}", tensorrt=SHIPPED)
        own = {"PATH": machine.environment["PATH"], "RECIPE_NODE_STORE": str(self.folder / f"store-{name}")}
        self.ray.add(
            name, python=machine.python, labels=f"ray.io/accelerator-type={label}",
            environment={"RECIPE_REMOTE": self.remote, **own},
        )  # fmt: skip

    def laptop(self, name):
        """Return the program in a project of its own, with an empty store."""
        program = Program(project_in(self.folder / name))
        program.environment |= {each: self.ray.environment[each] for each in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
        program.environment |= {
            "RECIPE_REMOTE": self.remote, "RECIPE_TRUST": "none",
            "XDG_CONFIG_HOME": str(program.folder / ".config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(program.folder / ".user"),
        }  # fmt: skip
        return program

    def build(self, laptop, *recipes):
        """Start a build on the cluster, and return its process."""
        return laptop.start("build", *recipes, *CHOSEN, "--on", self.ray.address, "--json")

    def workers(self, node):
        """Return the processes that run jobs on a node: their working folder is in its store."""
        folder = f"{self.folder / f'store-{node}'}/staging/"
        return working_folders.pids(lambda place: place.startswith(folder))


def project_in(folder):
    shutil.copytree(RECIPES, folder / "recipes")
    (folder / "pyproject.toml").write_text("")
    return folder


def until(is_true, seconds=120):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    yield fleet
    fleet.ray.close()


@pytest.fixture(scope="module")
def started(fleet):
    fleet.add("t4", FakeT4, "T4")
    fleet.add("l4", FakeL4, "L4")
    return fleet


@pytest.fixture(scope="module")
def survived(started):
    """The events of three builds: one lost a node, one was killed, and one made an end of it."""
    first = started.build(started.laptop("first"), NATIVE)
    events, killed = [], ""
    for event in map(json.loads, first.stdout):
        events.append(event)
        if not killed and event["event"] == "start" and (event["node"], event["job"]) == ("t4", "trt-build"):
            killed = event["node"]
            started.add("t4-spare", FakeT4, "T4")
            started.ray.kill(killed)
    assert first.wait() == 0, unfinished(events)
    second = started.build(started.laptop("second"), RTX)
    for event in map(json.loads, second.stdout):
        if event["event"] == "start" and event["job"] == "trt-build":
            until(lambda node=event["node"]: started.workers(node))
            os.kill(second.pid, signal.SIGKILL)
            break
    second.wait()
    second.stdout.close()
    until(lambda: not started.workers("t4-spare") + started.workers("l4"))
    third = started.build(started.laptop("third"), NATIVE, RTX)
    last = [json.loads(line) for line in third.communicate()[0].splitlines()]
    assert third.returncode == 0, unfinished(last)
    return killed, events, last


def unfinished(events):
    """The ends of the jobs without a result, as text: pytest shortens a list."""
    return str([event for event in events if event["event"] == "end" and event["state"] not in ("built", "cached")])


def ended(events):
    return {(event["recipe"], event["job"]): event for event in events if event["event"] == "end"}


def test_a_build_survives_the_end_of_a_node_in_mid_job_and_its_own_end(survived):
    killed, events, last = survived
    assert killed == "t4"
    # The two variants have all but the engine in common: what one builds is cached for the other.
    assert {event["state"] for event in ended(events).values()} <= {"built", "cached"}
    assert {job for (_, job), event in ended(events).items() if event["state"] == "built"} == {*BEFORE, "trt-build"}
    assert {event["state"] for event in ended(last).values()} <= {"built", "cached"}
    assert {(recipe, job) for recipe, job in ended(last) if job == "trt-build"} == {
        (f"minilm{kind}-{device}-fp16", "trt-build") for kind in ("", "-rtx") for device in ("T4", "L4")
    }
    assert {job for _, job in ended(last)} >= set(BEFORE)
    assert {event["state"] for name, event in ended(last).items() if name in ended(events)} == {"cached"}


def test_each_job_for_a_gpu_runs_on_a_node_that_has_the_gpu(survived):
    _, events, last = survived
    places = {}
    for event in (*events, *last):
        if event["event"] == "start" and event["job"] == "trt-build" and "rtx" not in event["recipe"]:
            places.setdefault(event["recipe"], set()).add(event["node"])
    assert places["minilm-L4-fp16"] == {"l4"}
    assert "t4" in places["minilm-T4-fp16"]
    assert places["minilm-T4-fp16"] <= {"t4", "t4-spare"}


def test_the_keys_and_the_reproducible_bytes_are_those_of_one_machine(survived, started):
    here = {}
    for kind, device in ((FakeT4, "T4"), (FakeL4, "L4")):
        project = started.folder / "here"  # both have one store: the second machine makes only its own engine
        place = started.folder / f"here-{device}"
        machine = kind(project if project.exists() else project_in(project), place, tensorrt=SHIPPED)
        words = ["--only", "precision=fp16", "--only", f"target.device={device}", "--to", "trt-build"]
        here |= ended(machine.events(NATIVE, RTX, *words))
    there = ended(survived[2])
    assert there.keys() == here.keys()
    assert {name: event["key"] for name, event in there.items()} == {name: event["key"] for name, event in here.items()}
    same = {name for name, step in registry.steps().items() if step.reproducible}
    assert {name for name in there if there[name]["artifact"] != here[name]["artifact"] and name[1] in same} == set()


def test_the_engines_of_tensorrt_rtx_are_real(survived, started):
    places = [path.parent for path in started.folder.glob("store-*/artifacts/*/passport.json")]
    shown = started.laptop("shows")("show", "--json", *map(str, places), expect=0).stdout
    engines = [engine for engine in json.loads(shown) if engine["kind"] == "tensorrt-rtx"]
    assert {tuple(engine["gpu"]) for engine in engines} == {("T4",), ("L4",)}
    assert all(engine["bytes"] > engine["onnx"]["bytes"] and engine["plan"] for engine in engines)
