"""A head that dies or stops ends a build with one error within half a minute, whatever Ray itself would wait for."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import user_caches
from gpu_project import project_in
from program import Program
from ray_cluster import RayCluster

pytestmark = [pytest.mark.slow, pytest.mark.whole]

RECIPE = "recipes/net0.yaml"
LONG = "recipes/long.yaml"
SIZES = [*range(2, 62)]
"""The largest batch of each variant of the long recipe, so that its build outlasts what is looked for."""
_SECONDS = 30


class Lab:
    """A cluster of a head and a node, and a laptop."""

    def __init__(self, folder):
        (folder / "remote").mkdir()
        remote = {"RECIPE_REMOTE": f"file://{folder / 'remote'}"}
        self.ray = RayCluster()
        self.ray.add("plain", environment={**remote, "RECIPE_NODE_STORE": str(folder / "store")})
        self.laptop = Program(project_in(folder / "laptop"), anew=True)
        (folder / "laptop" / LONG).write_text(
            "name: long\nmodel: {source: model.onnx}\ntarget: {runtime: onnxruntime}\nprecision: fp32\n"
            f"profiles: [{{batch: [1, 2, 4]}}]\nmatrix: {{profiles.0.batch.max: {SIZES}}}\n"
        )
        self.laptop.environment |= {
            **remote, "RAY_ADDRESS": self.ray.gcs, "RAY_AUTH_TOKEN": self.ray.environment["RAY_AUTH_TOKEN"],
            "RECIPE_TRUST": "none", "XDG_CONFIG_HOME": str(folder / ".config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(folder / ".user"),
        }  # fmt: skip
        self.laptop.environment.pop("RAY_AUTH_MODE", None)

    def servers(self):
        """Return the processes of the head's own server (GCS)."""
        own = str(self.ray.folder).encode()
        every = {each.parent.name: each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline")}
        servers = [int(name) for name, words in every.items() if b"gcs_server" in words and own in words]
        assert servers
        return servers

    def harm(self, how):
        """Kill the head, or only its server; or stop its server."""
        if how == "head killed":
            self.ray.kill("head")
        else:
            for process in self.servers():
                os.kill(process, signal.SIGKILL if how == "server killed" else signal.SIGSTOP)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.ray.close()


@pytest.mark.parametrize("where", ["auto", "ray://"])
@pytest.mark.parametrize("how", ["head killed", "server killed", "server stopped"])
def test_a_head_that_dies_during_a_build_ends_it_within_half_a_minute(lab, how, where):
    where = lab.ray.address if where == "ray://" else where
    with lab.laptop.start("build", LONG, "--on", where, "--json", stderr=subprocess.PIPE) as process:
        events = [json.loads(process.stdout.readline())]
        while events[-1]["event"] != "start":
            events.append(json.loads(process.stdout.readline()))
        lab.harm(how)
        began = time.monotonic()
        rest, talk = process.communicate(timeout=200)
    looks_for_it = where != "auto" and how != "server stopped"  # Ray's client does, for 30 seconds
    assert time.monotonic() - began < _SECONDS * (1.5 if looks_for_it else 1)
    assert process.returncode == 1, rest + talk
    assert f"error: the cluster {where} has gone\n" in talk, talk  # after a line of Ray's client about its log channel
    assert talk.count("error: ") == 1, talk


@pytest.mark.parametrize("where", ["auto", "ray://"])
@pytest.mark.parametrize("how", ["head killed", "server stopped"])
def test_a_head_that_is_dead_before_a_build_ends_it_within_half_a_minute(lab, how, where):
    lab.harm(how)
    began = time.monotonic()
    address, shown = ("auto", lab.ray.gcs) if where == "auto" else (lab.ray.address, lab.ray.address)
    talk = lab.laptop("build", RECIPE, "--on", address, expect=1).stderr
    assert time.monotonic() - began < _SECONDS
    assert talk.startswith(f"error: no cluster answers at {shown}\n"), talk


@pytest.mark.parametrize("where", ["auto", "ray://"])
def test_the_death_of_a_node_puts_nothing_but_json_on_stdout(lab, where):
    where = lab.ray.address if where == "ray://" else where
    with lab.laptop.start("build", RECIPE, "--on", where, "--json", stderr=subprocess.PIPE) as process:
        while json.loads(process.stdout.readline())["event"] != "start":
            pass
        lab.ray.kill("plain")
        rest, talk = process.communicate(timeout=200)
    assert process.returncode == 1, rest + talk
    events = [json.loads(line)["event"] for line in rest.splitlines()]
    assert events, talk
    assert "raylet" not in talk
