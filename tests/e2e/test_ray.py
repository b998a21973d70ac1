"""The command line on a real Ray cluster on the loopback: a head, a node with a (fake) T4, and a node without a GPU."""

import json
import subprocess
import sys

import pytest
import user_caches
from fake_t4 import FakeT4
from gpu_project import ANYWHERE, ON_T4, project_in
from program import Program
from ray_cluster import RayCluster

pytestmark = [pytest.mark.slow, pytest.mark.whole]

RECIPE = "recipes/net0.yaml"


class Team:
    """The cluster, its remote, and the laptops of a team."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "remote").mkdir(parents=True)
        self.remote = f"file://{folder / 'remote'}"
        self.ray = RayCluster()
        t4 = FakeT4(project_in(folder / "t4"), folder / "machine")
        nodes = {"RECIPE_REMOTE": self.remote}
        self.ray.add("plain", environment={**nodes, "RECIPE_NODE_STORE": str(folder / "store-plain")})
        own = {name: t4.environment[name] for name in ("PATH",)}
        self.ray.add(
            "t4", python=t4.python, labels="ray.io/accelerator-type=T4",
            environment={**nodes, **own, "RECIPE_NODE_STORE": str(folder / "store-t4")},
        )  # fmt: skip

    def laptop(self, name, *, precisions=("fp16",)):
        """Return the program in a project of its own, with an empty store."""
        program = Program(project_in(self.folder / name, precisions=precisions))
        names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")
        program.environment |= {each: self.ray.environment[each] for each in names}
        program.environment |= {
            "RAY_ADDRESS": self.ray.gcs, "RECIPE_REMOTE": self.remote, "RECIPE_TRUST": "none",
            "XDG_CONFIG_HOME": str(program.folder / ".config"),
            "XDG_CACHE_HOME": user_caches.with_bytecode(program.folder / ".user"),
        }  # fmt: skip
        return program


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    team = Team(tmp_path_factory.mktemp("team"))
    yield team
    team.ray.close()


def test_a_user_s_own_engine_beside_the_recipe_is_not_what_nodes_import(team):
    laptop = team.laptop("own-engine")
    (laptop.folder / "engine").mkdir()  # Ray puts the folder of a build first on the import path of its nodes
    (laptop.folder / "engine" / "__init__.py").write_text('raise RuntimeError("it must not run")')
    shown = subprocess.run(
        [sys.executable, "-m", "recipe_build", "doctor", "--on", "auto"],
        cwd=laptop.folder, env=laptop.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "left out" not in shown.stdout


def ended(events):
    return {event["job"]: event for event in events if event["event"] == "end"}


def test_each_job_runs_where_its_hardware_is_with_the_keys_and_bytes_of_one_machine(team):
    laptop = team.laptop("one")
    events = laptop.events(RECIPE, "--on", team.ray.address)
    nodes = {event["job"]: event["node"] for event in events if event["event"] == "start"}
    assert {job: event["state"] for job, event in ended(events).items()} == dict.fromkeys((*ANYWHERE, *ON_T4), "built")
    assert {nodes[job] for job in ON_T4[:2]} == {"t4"}
    assert set(nodes.values()) == {"plain", "t4"}
    assert (laptop.folder / "build" / "net0" / "net0" / "1" / "model.plan").read_bytes().startswith(b"FAKE ENGINE")
    alone = FakeT4(project_in(team.folder / "alone"), team.folder / "other-machine")
    there = ended(alone.events(RECIPE))
    # The key of `package` has the tools of the node that runs it, and the one without a GPU has no TensorRT.
    assert [job for job, event in ended(events).items() if event["key"] != there[job]["key"]] in ([], ["package"])
    same = [job for job in ANYWHERE if ended(events)[job]["artifact"] == there[job]["artifact"]]
    assert set(same) >= {"fetch", "reference", "shape-infer", "quantize"}
    assert {event["state"] for event in ended(laptop.events(RECIPE, "--on", "auto")).values()} == {"cached"}


def test_what_the_cluster_has_and_what_could_never_run_there(team):
    laptop = team.laptop("doctor")
    shown = laptop("doctor", "--on", "auto", "--for", RECIPE, expect=0).stdout
    [plain] = [line for line in shown.splitlines() if line.startswith("plain")]
    [t4] = [line for line in shown.splitlines() if line.startswith("t4")]
    assert "Tesla T4" in t4
    assert "GPU: none" in plain
    recipe = laptop.folder / RECIPE
    recipe.write_text(recipe.read_text().replace("device: T4", "device: L4"))
    shown = laptop("doctor", "--on", "auto", "--for", RECIPE, expect=3).stdout
    assert "net0 trt-build could never run: " in shown
    waits = laptop("build", RECIPE, "--on", "auto", expect=3).stderr
    assert "waits for: L4" in waits
    assert "t4: this machine has Tesla T4" in waits


def test_doctor_leaves_out_the_nodes_that_a_build_would_not_use(team):
    laptop = team.laptop("other-remote")
    laptop.environment["RECIPE_REMOTE"] = f"file://{team.folder / 'other'}"
    shown = laptop("doctor", "--on", "auto", "--for", RECIPE, expect=3).stdout
    reason = f"left out: the node has the remote {team.remote}, not file://{team.folder / 'other'}"
    rows = {line.split()[0]: line for line in shown.splitlines() if reason in line}
    assert rows.keys() == {"plain", "t4"}
    del laptop.environment["RECIPE_REMOTE"]
    assert "needs a remote" in laptop("doctor", "--on", "auto", "--for", RECIPE, expect=2).stderr


def test_a_build_without_the_token_says_so(team):
    laptop = team.laptop("no-token")
    laptop.environment["RAY_AUTH_TOKEN"] = "0" * 64
    refused = laptop("build", RECIPE, "--on", team.ray.address, expect=1).stderr
    assert "must have the token of the head" in refused
    assert "UserWarning" not in refused


def test_a_build_whose_head_dies_ends_with_an_error(tmp_path):
    team = Team(tmp_path)
    laptop = team.laptop("left")
    laptop.environment["RAY_CLIENT_RECONNECT_GRACE_PERIOD"] = "3"
    words = ("build", RECIPE, "--on", team.ray.address, "--json")
    try:
        with laptop.start(*words, stderr=subprocess.PIPE) as process:
            events = [json.loads(process.stdout.readline())]
            while events[-1]["event"] != "start":
                events.append(json.loads(process.stdout.readline()))
            team.ray.kill("head")
            rest, talk = process.communicate(timeout=100)
    finally:
        team.ray.close()
    assert process.returncode == 1, rest + talk
    assert f"the cluster {team.ray.address} has gone" in rest + talk
    assert "Traceback" not in talk


def test_two_builders_build_each_key_once_in_the_whole_cluster(team):
    laptops = [team.laptop(name, precisions=("fp32",)) for name in ("left", "right")]
    new = ("--set", "tensorrt.optimization_level=2")
    builds = [laptop.start("build", RECIPE, *new, "--on", "auto", "--json") for laptop in laptops]
    lines = [build.communicate()[0].splitlines() for build in builds]
    assert [build.returncode for build in builds] == [0, 0], lines
    built = [
        event["key"]
        for each in lines
        for event in map(json.loads, each)
        if event["event"] == "end" and event["state"] == "built"
    ]
    assert len(built) == len(set(built)) > 0


def test_a_forced_step_runs_again_on_its_node_and_other_steps_do_not(team):
    laptop = team.laptop("forced")
    new = ("--set", "tensorrt.optimization_level=1")
    laptop.events(RECIPE, *new, "--on", "auto")
    events = laptop.events(RECIPE, *new, "--on", "auto", "--force", "trt-build")
    assert {job for job, event in ended(events).items() if event["state"] == "built"} == {"trt-build"}
    assert [event["node"] for event in events if event["event"] == "start"] == ["t4"]
    assert {event["state"] for event in ended(laptop.events(RECIPE, *new, "--on", "auto")).values()} == {"cached"}


def test_what_a_build_on_a_cluster_refuses(team):
    laptop = team.laptop("refused")
    assert (
        "--remake is about jobs on this machine"
        in laptop("build", RECIPE, "--on", "auto", "--remake", "fetch", expect=2).stderr
    )
    laptop.environment.pop("RECIPE_REMOTE")
    assert "needs a remote" in laptop("build", RECIPE, "--on", "auto", expect=2).stderr
    assert "no cluster answers" in laptop("build", RECIPE, "--on", "ray://127.0.0.1:1", expect=1).stderr
