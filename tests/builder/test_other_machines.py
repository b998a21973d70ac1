"""Records from a machine with a GPU serve a machine without one if they fit; otherwise `why` names the row."""

import pretended
import pytest
from engine_steps import Compare, Compile, First, Graph, HandOn, Pack, Recall, SameCapability, SameMajor, Try
from small_builds import build, states, variant

from engine.builder.lookup import Lookup
from engine.builder.why import examine
from engine.key import Change
from engine.machine import local_gpus, tools
from engine.machine.local_gpus import LocalGpu
from engine.store import output
from engine.store.store import Store

T4 = LocalGpu("Tesla T4", 75, "550.54")
A10 = LocalGpu("NVIDIA A10", 86, "550.54")
TURING = LocalGpu("NVIDIA GeForce RTX 2080 Ti", 75, "550.54")


@pytest.fixture
def on(monkeypatch):
    """Make this machine one with these GPUs and this version of TensorRT."""

    def go(*gpus, tensorrt="10.13.0.35"):
        monkeypatch.setattr(local_gpus, "gpus", lambda: gpus)
        monkeypatch.setitem(tools._versions, "tensorrt", tensorrt if gpus else tools.MISSING)

    go()
    return go


def plan(project, engine=None):
    return variant(project, Graph(), engine or Compile(), Try(), Pack())


def findings(project, engine=None):
    return {each.job.name: each for each in examine(plan(project, engine), Lookup(Store(project / "cache")))}


def artifacts(events):
    return {event.job: event.artifact for event in events if hasattr(event, "artifact")}


def test_without_the_gpu_everything_before_it_is_built_and_the_rest_waits(project, on):
    assert states(build(project, plan(project))) == {
        "graph": "built", "compile": "waiting", "try": "skipped", "pack": "skipped",
    }  # fmt: skip


@pytest.mark.parametrize(
    "differ",
    [("", ""), ("a server's CPU", "a laptop's CPU"), ("2.13.0+cu126", "2.13.0+cpu")],
    ids=["nothing else differs", "another CPU", "the same release of a tool for a CPU"],
)
def test_a_record_made_on_a_t4_is_a_hit_without_one_down_to_the_package(project, on, monkeypatch, differ):
    def pretend(value):
        if "CPU" in value:
            pretended.fact(monkeypatch, "cpu.model", value)
        elif value:
            monkeypatch.setitem(tools._versions, "pyyaml", value)

    there, here = differ
    on(T4)
    pretend(there)
    built = build(project, plan(project))
    assert set(states(built).values()) == {"built"}
    on()
    pretend(here)
    assert findings(project)["compile"].state == "cached"
    assert findings(project)["compile"].record.key["facts.device.name"] == "Tesla T4"
    cached = build(project, plan(project))
    assert set(states(cached).values()) == {"cached"}
    assert artifacts(cached) == artifacts(built)


def test_what_another_machine_left_is_packed_here(project, on):
    on(T4)
    build(project, variant(project, Graph(), Compile(), Try()))
    on()
    assert states(build(project, plan(project))) == {
        "graph": "cached", "compile": "cached", "try": "cached", "pack": "built",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("there", "wants", "change"),
    [
        ((A10, "10.13.0.35"), Compile(gpu="T4"), Change("facts.device.name", "NVIDIA A10", "T4")),
        ((T4, "11.4.0.1"), Compile(), Change("tools.tensorrt", "11.4.0.1", "10.x")),
        ((T4, "10.13.0.35"), Compile(version="10.4"), Change("tools.tensorrt", "10.13.0.35", "10.4")),
        ((T4, "10.13.0.35"), Compile(profile=256), Change("options.profile", "128", "256")),
    ],
    ids=["device", "major", "minor", "profile"],
)
def test_a_record_of_another_device_version_or_profile_is_none_and_why_names_the_row(project, on, there, wants, change):
    gpu, tensorrt = there
    on(gpu, tensorrt=tensorrt)
    theirs = Compile(gpu="A10" if gpu is A10 else "T4", version=None)
    build(project, variant(project, Graph(), theirs))
    on()
    (project / "cache" / "heads").rename(project / "heads")
    finding = findings(project, wants)["compile"]
    assert finding.state == "new"
    assert change in finding.changes
    assert states(build(project, plan(project, wants)))["compile"] == "waiting"


@pytest.mark.parametrize(("text", "state"), [("answers", "cached"), ("other answers", "waiting")])
def test_an_input_that_differs_by_the_cpu_alone_does_not_count_either(project, on, text, state):
    """The output names the worker's CPU. The planted record therefore has the output of another CPU."""
    on(T4)
    everything = variant(project, Graph(), Compile(), Recall(), Compare(), Pack())
    build(project, everything)
    on()
    store = Store(project / "cache")
    [recalled] = [record for record in store.records() if record.job == "recall"]
    plant(store, recalled, {"facts.cpu.isa": "of another CPU"}, {"answers": b"answers of another CPU"})
    [theirs] = [record for record in store.records() if record.key.get("facts.cpu.isa") == "of another CPU"]
    [compared] = [record for record in store.records() if record.job == "compare"]
    plant(store, compared, {"inputs.recalled": str(theirs.artifact)}, {"engine": b"theirs"})
    store.record_path(compared.digest).unlink()
    again = variant(project, Graph(), Compile(), Recall(text=text), Compare(), Pack())
    assert states(build(project, again))["compare"] == state


def test_a_step_that_hands_its_input_on_is_looked_through_once(project, on):
    """A plan with two graphs that are both handed on unchanged."""
    on(T4)
    for text in ("one", "two"):
        build(project, variant(project, First(text=text), HandOn(), Compile()))
    on()
    planned = variant(project, First(text="three"), HandOn(), Compile())
    assert states(build(project, planned)) == {"first": "built", "hand-on": "built", "compile": "waiting"}


def plant(store, record, rows, files):
    """Store a record of another machine: a copy of this record with some rows changed."""
    with store.presence.workplace() as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        files = output.take(folder)
        here = {"gpu.name": "Tesla T4"}
        key = {**record.key, **rows}
        store.commit(key, folder, files, report={}, seconds=1.0, peak_bytes=1, machine=here, job=record.job)
    store.leave()


def test_a_tool_that_does_not_drive_the_gpu_counts_here_as_there(project, on, monkeypatch):
    on(T4)
    build(project, plan(project))
    on()
    monkeypatch.setitem(tools._versions, "pyyaml", "99")
    finding = findings(project)["try"]
    assert finding.state == "stale"
    assert [each.row for each in finding.changes] == ["tools.pyyaml"]


def test_on_the_gpu_itself_only_its_own_record_will_do(project, on):
    on(A10)
    build(project, variant(project, Graph(), Compile(gpu="A10")))
    on(T4)
    assert states(build(project, plan(project)))["compile"] == "built"


@pytest.mark.parametrize(
    ("gpu", "name", "rows"),
    [(TURING, "RTX 2080 Ti", []), (A10, "A10", [("facts.device.sm", "86", "75")])],
    ids=["the same", "another"],
)
def test_an_engine_for_a_compute_capability_is_a_hit_for_all_its_gpus_alone(project, on, gpu, name, rows):
    on(gpu)
    build(project, variant(project, Graph(), SameCapability(gpu=name)))
    on()
    finding = findings(project, SameCapability(gpu="T4"))["same-capability"]
    assert finding.state == ("stale" if rows else "cached")
    assert [(each.row, each.old, each.new) for each in finding.changes] == rows


@pytest.mark.parametrize(
    ("version", "state"), [("10.14", "cached"), ("10.x", "cached"), ("10.4", "stale"), ("11.x", "stale")]
)
def test_a_version_compatible_engine_is_a_hit_for_later_versions_of_its_major(project, on, version, state):
    on(T4)
    build(project, variant(project, Graph(), SameMajor()))
    on()
    assert findings(project, SameMajor(version=version))["same-major"].state == state


def test_other_bytes_of_the_same_key_rebuild_nothing_behind_it(project, on):
    on(T4)
    first = build(project, plan(project))
    again = build(project, plan(project), force=frozenset({"compile"}))
    assert states(again) == {"graph": "cached", "compile": "built", "try": "cached", "pack": "cached"}
    assert artifacts(again)["compile"] != artifacts(first)["compile"]
    assert artifacts(again)["pack"] == artifacts(first)["pack"]
    assert set(states(build(project, plan(project))).values()) == {"cached"}


def test_a_job_that_was_never_built_is_not_compared_with_a_record_of_another_model(project, on):
    on(T4)
    build(project, variant(project, Graph(text="another model"), Compile(profile=256), name="other"))
    on()
    build(project, variant(project, Graph(), name="other"))
    finding = findings(project)["compile"]
    assert finding.state == "new"
    assert finding.changes == ()
