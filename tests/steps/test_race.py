"""The step `race`: models of several points in turns, what its key has, and contestants that cannot run."""

import contextlib
import json
import threading
import time
from functools import partial

import executions
import fake_cuda_provider
import graphs
import pytest

from engine.builder import jobs
from engine.errors import StepError
from engine.kit.bench import race, stats
from engine.kit.bench.contenders import BuiltModel
from engine.kit.bench.interleaving import Budget
from engine.kit.bench.race import RaceReport, RaceRow
from engine.kit.bench.report import Unmeasured
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.recipe.schema import BenchSection, ModelSection, Recipe, TargetSection
from engine.runtimes import requirements
from engine.runtimes.execution import Execution
from engine.runtimes.runner import Runner
from engine.steps.race import Contestant, Race


class Quick(Race):
    """The real step, in less time."""

    budget = Budget(seconds=0.2, warm_up=0.05, rounds=4)


def contestant(**fields):
    return Contestant(**{"execution": Execution(), "axes": {"batch": 1}, "threads": 1, **fields})


@pytest.fixture
def nets(tmp_path):
    """Networks by the width of their hidden layer."""
    return {width: graphs.write(tmp_path / str(width), graphs.layers(64, width)) for width in (64, 2048)}


def raced(tmp_path, exported, models, *contestants, **fields):
    step = Quick(contestants=contestants, **fields)
    taken = {parameter: models[int(place)] for parameter, place in step.models_of().items()}
    return step.run(tmp_path / "out", exported=exported, **taken)


def test_each_contestant_has_its_figures_at_its_own_batch_and_every_call_is_kept(nets, tmp_path):
    models = [nets[64], nets[64], nets[2048]]
    eight = contestant(axes={"batch": 8})
    report = raced(tmp_path, nets[64], models, contestant(), eight, contestant())
    assert [(row.rows, row.rounds, row.was_cut) for row in report.rows] == [(1, 4, False), (8, 4, False), (1, 4, False)]
    assert [list(row.leads) for row in report.rows] == [[], *[["p50_ms", "p95_ms", "rows_per_s"]] * 2]
    assert report.rows[1].leads["rows_per_s"].ratio > report.rows[1].leads["p50_ms"].ratio
    assert RaceReport.from_json(report.to_json()) == report
    raw = json.loads((tmp_path / "out" / "latencies.json").read_text())
    assert {number: len(rounds) for number, rounds in raw.items()} == {"0": 4, "1": 4, "2": 4}
    every = [value for values in raw["0"] for value in values]
    assert stats.median(every) == pytest.approx(report.rows[0].p50_ms, abs=0.001)


def test_copies_share_the_cores_and_are_called_at_once(nets, tmp_path, monkeypatch):
    monkeypatch.setattr("engine.machine.cpu.physical_cores", lambda: 5)
    several = contestant(threads=None, instances=2)
    report = raced(tmp_path, nets[2048], [nets[2048]] * 2, contestant(threads=None), several)
    assert [(row.instances, row.threads) for row in report.rows] == [(1, 5), (2, 2)]
    two = report.rows[1]
    raw = json.loads((tmp_path / "out" / "latencies.json").read_text())["1"]
    mean = sum(map(sum, raw)) / sum(map(len, raw)) / 1e3
    assert two.rows_per_s == pytest.approx(2 / mean, rel=0.05)  # each copy is called again when it is done


@pytest.mark.parametrize("copies", [1, 2])
def test_each_call_of_a_copy_is_in_the_context_of_its_runner_entered_by_the_thread_that_calls(
    copies, nets, tmp_path, monkeypatch
):
    """PyTorch counts threads by the thread that calls: a context of another thread leaves it all cores."""
    called = []

    class Counting:
        def __init__(self):
            self.inside = threading.local()

        @contextlib.contextmanager
        def active(self):
            self.inside.here = True
            try:
                yield
            finally:
                self.inside.here = False

        def call(self):
            called.append((self, threading.get_ident(), getattr(self.inside, "here", False)))
            time.sleep(0.001)

    def runner(_):
        counting = Counting()
        return Runner("counting", lambda _: {}, lambda _: counting.call, counting.active)

    monkeypatch.setattr(BuiltModel, "runner", runner)
    raced(tmp_path, nets[64], [nets[64]], contestant(instances=copies))
    threads = [{ident for each, ident, _ in called if each is one} for one in {each for each, _, _ in called}]
    assert len(threads) == copies
    assert copies == 1 or all(idents - {threading.get_ident()} for idents in threads)
    assert all(is_inside for _, _, is_inside in called)


def test_a_contestant_that_cannot_run_is_named_and_the_race_goes_on(nets, tmp_path):
    odd = graphs.write(tmp_path / "odd", graphs.layers(32, 8))
    report = raced(tmp_path, nets[64], [nets[64], odd, tmp_path / "nothing", nets[64]], *[contestant()] * 4)
    assert [type(row) for row in report.rows] == [RaceRow, Unmeasured, Unmeasured, RaceRow]
    assert all(row.reason for row in report.rows[1:3])
    assert list(json.loads((tmp_path / "out" / "latencies.json").read_text())) == ["0", "3"]


def test_a_baseline_that_cannot_run_ends_the_race(nets, tmp_path):
    odd = graphs.write(tmp_path / "odd", graphs.layers(32, 8))
    with pytest.raises(StepError):
        raced(tmp_path, nets[64], [odd, nets[64]], contestant(), contestant())


@pytest.mark.parametrize("in_graph", [True, False])
def test_a_model_runs_in_a_cuda_graph_where_a_profile_fixes_its_shape(in_graph, nets, tmp_path, monkeypatch):
    device = fake_cuda_provider.install(monkeypatch)
    on_t4 = executions.execution("cuda", hardware=requirements.on(["T4"], tool="onnxruntime-gpu"))
    each = contestant(execution=on_t4, in_graph=in_graph)
    report = raced(tmp_path, nets[64], [nets[64]] * 2, each, each)
    assert report.gpu == fake_cuda_provider.NAME
    assert [row.graph is not None for row in report.rows] == [in_graph] * 2
    assert ("replay 1" in device.diary) is in_graph


def test_no_recipe_has_a_race():
    recipe = Recipe(name="m", model=ModelSection(source="net.onnx"), steps={"race": {}})
    assert Race.for_recipe(recipe) is None


def test_a_contestant_is_run_as_its_recipe_says():
    recipe = Recipe(
        name="m", model=ModelSection(source="net.onnx"), target=TargetSection(device="T4"),
        profiles=[{"batch": 8, "sequence": 128}], bench=BenchSection(threads=3),
    )  # fmt: skip
    fixed = Contestant.for_recipe(recipe, {"batch": 8})
    assert (fixed.axes, fixed.threads, fixed.in_graph) == ({"batch": 8, "sequence": 128}, 3, True)
    assert fixed.execution == Execution.for_recipe(recipe)
    free = Contestant.for_recipe(recipe, {"batch": 4}, instances=2)
    assert (free.axes["batch"], free.in_graph, free.instances) == (4, False, 2)


def test_on_a_gpu_a_race_needs_the_packages_of_all_contestants():
    def on_t4(runtime):
        target = TargetSection(device="T4", runtime=runtime)
        recipe = Recipe(name="m", model=ModelSection(source="net.onnx"), target=target, profiles=[{"batch": 8}])
        return Contestant.for_recipe(recipe, {})

    ort_gpu, trt = on_t4("onnxruntime"), on_t4("tensorrt")
    assert Race(contestants=(ort_gpu,)).hardware() == ort_gpu.execution.needs
    assert Race(contestants=(ort_gpu, ort_gpu)).hardware() == ort_gpu.execution.needs
    both = Race(contestants=(ort_gpu, trt)).hardware()
    assert both.tools == ("onnxruntime-gpu", "tensorrt")
    assert both.devices == ort_gpu.execution.needs.devices
    assert {"onnxruntime-gpu", "tensorrt"} <= set(Race(contestants=(ort_gpu, trt)).tools_used())


def test_a_worker_gets_the_race_as_it_is_planned():
    step = Race(contestants=(contestant(instances=2), contestant(values={"x": (1, 2)})), cut=1.25, by="rows_per_s")
    jobs.refuse_lossy("race", step)
    assert step.options().keys() == {"contestants", "cut", "by"}


@pytest.mark.whole("the same calls are timed by the tests above, but not long enough to compare two medians")
def test_a_race_agrees_with_a_loop_of_its_own_over_the_same_files(nets, tmp_path, monkeypatch):
    """A plain session and the race take turns, and count CPU time: on a busy machine a long loop waits more than turns.

    Several copies need as many idle CPUs, which no test can count on: above are their rates, by Little's law.
    """
    import onnxruntime

    monkeypatch.setattr(race, "run", partial(race.run, clock=time.thread_time))
    axes = {"batch": 256}
    step = Race(contestants=(contestant(axes=axes),))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = str(nets[2048] / onnx_files.MODEL)
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    x = bench_inputs.draw(onnx_files.load_graph(nets[2048]), axes)

    def loop():
        took, until = [], time.thread_time() + 0.5
        while time.thread_time() < until:
            began = time.thread_time()
            session.run(None, x)
            took.append((time.thread_time() - began) * 1e3)
        return took

    latencies, rates = [], []
    for _ in range(5):
        before = loop()
        [row] = step.run(tmp_path / "out", exported=nets[2048], model_0=nets[2048]).rows
        every = [*before, *loop()]
        latencies.append(row.p50_ms / stats.median(every))
        rates.append(row.rows_per_s / (len(every) * 256))
    assert 0.9 < stats.median(latencies) < 1.1, latencies
    assert 0.9 < stats.median(rates) < 1.1, rates
