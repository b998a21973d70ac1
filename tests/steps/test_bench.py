import json
import os
import sys
from dataclasses import replace

import executions
import graphs
import models
import pytest

from engine.errors import JudgementError, StepError
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import BenchReport, BenchRow
from engine.machine import cpu, cuda, gpu_state
from engine.machine.gpu_state import GpuReport
from engine.recipe.schema import BenchSection, ModelSection, Recipe, RivalSection, Shape, Validation
from engine.runtimes import requirements
from engine.step import Source
from engine.steps.bench import LATENCIES, Bench


class Quick(Bench):
    """The real step, in less time."""

    budget = Budget(seconds=0.3, warm_up=0.1, rounds=5)


T4 = executions.execution(runtime="tensorrt", hardware=requirements.on(["T4"], tool="tensorrt"))
PLAIN, EAGER = RivalSection(runtime="onnxruntime"), RivalSection(runtime="pytorch")
COMPILED = RivalSection(runtime="pytorch", compile="default")


def recipe(**options):
    return Recipe(name="m", model=ModelSection(source="hf:a/b"), **options)


@pytest.fixture
def layers(tmp_path):
    return graphs.write(tmp_path / "layers", graphs.layers())


def run(step, model, tmp_path, checkpoint=None, exported=None):
    out = tmp_path / "measurements"
    return step.run(out, validated=model, exported=exported or model, checkpoint=checkpoint or model), out


def test_our_model_and_a_rival_are_measured_with_the_same_shapes_and_threads(layers, tmp_path):
    step = Quick(name_of_ours="onnxruntime-int8", shapes=({"batch": 1}, {"batch": 64}), against=(PLAIN,), threads=1)
    report, out = run(step, layers, tmp_path)
    rows = report.rows
    assert report.threads == 1
    assert report.cpu
    assert [(row.shape["batch"], row.runtime, row.ours) for row in rows] == [
        (1, "onnxruntime-int8", True),
        (1, "onnxruntime-fp32", False),
        (64, "onnxruntime-int8", True),
        (64, "onnxruntime-fp32", False),
    ]
    for row in rows:
        assert 0 < row.p50_ms <= row.p95_ms <= row.p99_ms
        assert row.runs >= 100
        assert row.via == "in-process"
    assert rows[1].ratio_to == {}
    of_medians = rows[1].p50_ms / rows[0].p50_ms  # a busy machine can slow one of two equal models
    assert of_medians / 5 < rows[0].ratio_to["onnxruntime-fp32"] < 5 * of_medians
    raw = json.loads((out / LATENCIES).read_text())
    assert [sum(map(len, each["rounds_ms"])) for each in raw] == [row.runs for row in rows]


def test_every_model_has_a_pause_at_each_shape_and_a_start_or_the_reason_without_one(layers, tmp_path):
    report, _ = run(Quick(shapes=({"batch": 1}, {"batch": 4}), against=(PLAIN,), threads=1), layers, tmp_path)
    assert all(row.paused_ms > 0 and row.interval("paused_ms")[0] <= row.paused_ms for row in report.rows)
    assert [(start.runtime, start.ours) for start in report.starts] == [
        ("onnxruntime-fp32", True),
        ("onnxruntime-fp32", False),
    ]
    assert all((start.load_s is None) == bool(start.reason) for start in report.starts)


def test_without_a_number_of_its_own_bench_has_the_threads_of_the_package():
    package = {"triton": {"threads": 3}}
    assert Bench.for_recipe(recipe(bench=BenchSection(), package=package)).threads == 3
    assert Bench.for_recipe(recipe(bench=BenchSection(threads=1), package=package)).threads == 1


def test_shapes_are_the_recipe_s_or_the_profiles_opt():
    profiles = ({"batch": 1, "sequence": [1, 16, 128]}, {"batch": [1, 8, 32], "sequence": [1, 128, 512]})
    own = Bench.for_recipe(recipe(profiles=profiles, bench=BenchSection()))
    assert own.shapes == ({"batch": 1, "sequence": 16}, {"batch": 8, "sequence": 128})
    section = BenchSection(shapes=(Shape(axes={"sequence": 32}),))
    assert Bench.for_recipe(recipe(profiles=profiles, bench=section)).shapes == ({"batch": 1, "sequence": 32},)
    assert Bench.for_recipe(recipe()) is None


def test_neither_a_budget_nor_a_profile_that_decides_no_shape_is_part_of_the_key():
    def planned(budget, *sequence):
        shape = Shape(axes={"batch": 1, "sequence": 32}, budget=budget)
        profiles = ({"batch": 1, "sequence": [*sequence]},)
        return Bench.for_recipe(recipe(profiles=profiles, bench=BenchSection(shapes=(shape,))))

    bound = planned({"p95_ms": 2}, 1, 64, 512)
    assert planned({}, 1, 16, 128).options() == bound.options()
    assert bound.budgets == ({"p95_ms": 2},)


def test_without_shapes_and_profiles_the_usual_shape_of_the_model_is_measured(tmp_path):
    exported = models.classifier_with_tokenizer(tmp_path / "exported")
    checkpoint = models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification", tokenizer=False)
    step = Bench.for_recipe(recipe(bench=BenchSection(threads=1)))
    assert "checkpoint" in step.inputs_used()
    report, _ = run(Quick(**dict(step)), exported, tmp_path, checkpoint=checkpoint)
    assert [row.shape for row in report.rows] == [{"batch": 1, "sequence": 64}], "the checkpoint has 64 positions"


def test_only_what_is_measured_counts():
    plain, eager = (Bench(against=against, shapes=({"batch": 1},)) for against in ((PLAIN,), (PLAIN, EAGER)))
    assert ["torch" in each.tools_used() for each in (plain, eager)] == [False, True]
    assert "checkpoint" not in plain.inputs_used()
    assert eager.inputs_used() == ("validated", "exported", "checkpoint")
    assert "onnxruntime.build" in Bench().facts_used()
    assert "onnxruntime.build" not in Bench(execution=T4, against=(EAGER,)).facts_used()
    assert "onnxruntime.build" in Bench(execution=T4, against=(PLAIN,)).facts_used()


def test_a_rival_that_is_not_compiled_keeps_its_rows_and_a_compiled_one_has_the_compiler_in_its_key():
    recipes = [recipe(bench=BenchSection(against=(EAGER, *more))) for more in ((), (COMPILED,))]
    eager, both = map(Bench.for_recipe, recipes)
    assert eager.options()["against"] == [{"runtime": "pytorch", "precision": "fp32"}]
    assert both.options()["against"][1] == {"runtime": "pytorch", "precision": "fp32", "compile": "default"}
    assert set(both.facts_used()) - set(eager.facts_used()) == {"cxx.version"}


def test_a_rival_that_cannot_be_loaded_here_is_named_with_what_to_install_and_the_rest_is_measured(
    layers, tmp_path, monkeypatch
):
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    step = Quick(against=(EAGER, PLAIN), shapes=({"batch": 1},), budgets=({"p95_ms": 1000.0},))
    report, _ = run(step, layers, tmp_path, checkpoint=checkpoint)
    step.judge(report)
    assert [row.runtime for row in report.rows] == ["onnxruntime-fp32", "onnxruntime-fp32"]
    [eager] = report.unmeasured
    assert eager.runtime == "pytorch-fp32"
    assert "needs torch" in eager.reason
    assert "pip install 'recipe-build[cpu]'" in eager.reason


def test_an_onnx_file_has_no_model_in_pytorch(layers, tmp_path):
    report, _ = run(Quick(against=(EAGER,), shapes=({"batch": 1},)), layers, tmp_path)
    assert "no PyTorch model" in report.unmeasured[0].reason
    assert [row.ours for row in report.rows] == [True]


def test_a_rival_that_fails_at_one_shape_is_measured_at_the_others(layers, tmp_path, monkeypatch):
    prepare = Contender.in_process

    def in_process(runner, *, ours=False):
        contender = prepare(runner, ours=ours)

        def small(inputs):
            if len(inputs["x"]) > 1:
                raise StepError("too large for it", ["batch 2"], "take it out")
            return contender.prepare(inputs)

        return contender if ours else replace(contender, prepare=small)

    monkeypatch.setattr(Contender, "in_process", in_process)
    report, _ = run(Quick(against=(PLAIN,), shapes=({"batch": 1}, {"batch": 2})), layers, tmp_path)
    assert [(row.shape["batch"], row.ours) for row in report.rows] == [(1, True), (1, False), (2, True)]
    [left_out] = report.unmeasured
    assert (left_out.shape, left_out.reason) == ({"batch": 2}, "too large for it; batch 2; take it out")


def test_a_built_model_that_fails_ends_the_measurement(layers, tmp_path):
    (layers / "model.onnx").write_bytes(b"no model")
    with pytest.raises(StepError):
        run(Quick(shapes=({"batch": 1},)), layers, tmp_path)


def test_pytorch_is_measured_with_the_asked_threads_which_are_given_back(tmp_path):
    import torch

    checkpoint = models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification")
    exported = graphs.tiny("bert")
    before = torch.get_num_threads()
    seen = set()
    original = torch.set_num_threads
    try:
        torch.set_num_threads = lambda count: (seen.add(count), original(count))
        step = Quick(against=(EAGER,), shapes=({"batch": 1, "sequence": 8},), threads=1)
        report, _ = run(step, exported, tmp_path, checkpoint=checkpoint, exported=exported)
    finally:
        torch.set_num_threads = original
    assert 1 in seen
    assert torch.get_num_threads() == before
    ours, eager = report.rows
    assert eager.runtime == "pytorch-fp32"
    assert ours.ratio_to["pytorch-fp32"] > 1


def test_physical_cores_are_at_least_one_and_at_most_the_cpus():
    assert 1 <= cpu.physical_cores() <= os.cpu_count()
    assert cpu.model() or sys.platform != "linux"


ON_T4 = executions.execution("cuda", hardware=requirements.on(["T4"], tool="onnxruntime-gpu"))


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
@pytest.mark.parametrize("rival", [PLAIN, EAGER, RivalSection(runtime="pytorch", precision="fp16")])
def test_without_a_gpu_no_rival_is_measured_for_one(layers, tmp_path, rival):
    with pytest.raises(StepError, match="There is no GPU here that CUDA programs can use"):
        run(Quick(execution=ON_T4, against=(rival,), shapes=({"batch": 1},)), layers, tmp_path)


def test_a_gpu_is_told_with_what_its_clocks_did(monkeypatch):
    states = iter([("1590", "40"), ("1590", "41"), ("1350", "60")])

    def query():
        clock, heat = next(states)
        state = {"name": "Tesla T4", "driver_version": "550.54", "clocks.current.sm": clock, "clocks.max.sm": "1590"}
        return [{**state, "clocks.current.memory": "[N/A]", "temperature.gpu": heat}]

    monkeypatch.setattr(gpu_state, "query", query)
    seen = gpu_state.look("Tesla T4") + gpu_state.look("Tesla T4")
    assert gpu_state.report("Tesla T4", seen) == GpuReport(
        name="Tesla T4", driver="550.54", sm_mhz=(1590, 1590), celsius=(40, 41), max_sm_mhz=1590, steady=True
    )
    assert gpu_state.report("Tesla T4", seen + gpu_state.look("Tesla T4")).steady is False
    assert gpu_state.report("Tesla T4", []) == GpuReport(name="Tesla T4")


def test_clocks_are_left_out_where_nobody_tells_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_state.query() == []
    broken = tmp_path / "nvidia-smi"
    broken.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert gpu_state.query() == []


SERVED = BenchSection(via=("in-process", "triton-grpc"), against=(PLAIN,))


def test_only_what_is_measured_through_a_server_depends_on_it():
    from engine.builder.code import closure

    shapes = (Shape(axes={"batch": 1, "sequence": 32}),)
    here = Bench.for_recipe(recipe(bench=BenchSection(against=(PLAIN,), shapes=shapes)))
    package = {"triton": {"name": "x", "dynamic_batching": {"max_queue_delay_microseconds": 9}}}
    there = Bench.for_recipe(recipe(bench=SERVED, package=package))
    assert there.serving.fields == {"dynamic_batching": {"max_queue_delay_microseconds": 9}}
    assert not {"via", "serving"} & here.options().keys()
    assert {"via", "serving"} <= there.options().keys()
    assert "triton.server" in set(there.facts_used()) - set(here.facts_used())
    assert {"tokenizers", "tritonclient"} <= set(there.tools_used()) - set(here.tools_used())
    assert "checkpoint" in set(there.inputs_used()) - set(here.inputs_used())
    runs = [name for name in here.code_used() if name.startswith("engine.runtimes.")]
    assert runs == [
        "engine.runtimes.onnxruntime.spec",
        "engine.runtimes.runtime",
        "engine.runtimes.onnxruntime.runner",
    ]
    assert not {name for name in here.code_used() if name.startswith(("engine.server", "engine.kit.triton"))}
    names = [{file.name for file in closure.of_step(each).before} for each in (here, there)]
    assert {"measured_server.py", "repository.py", "stand_in.py"} <= names[1] - names[0]


def test_a_budget_holds_for_every_way_that_is_asked():
    def row(way, value, batch):
        return BenchRow(
            shape={"batch": batch}, via=way, runtime="m", ours=True, ratio_to={}, mean_ms=value, p50_ms=value,
            p95_ms=value, p99_ms=value, runs=1, noise=0.0,
        )  # fmt: skip

    rows = (
        row("in-process", 1.0, 1),
        row("triton-grpc", 3.0, 1),
        row("in-process", 2.0, 8),
        row("triton-grpc", 4.0, 8),
    )
    report = BenchReport(rows=rows, cpu="some", threads=1)
    Bench(budgets=({"p50_ms": 3.0}, {"p50_ms": 4.0})).judge(report)
    with pytest.raises(JudgementError) as caught:
        Bench(budgets=({"p50_ms": 2.0}, {"p50_ms": 1.5})).judge(report)
    text = str(caught.value)
    assert "batch 1 via triton-grpc: p50_ms is 3.000, 1.000 over its budget of 2" in text
    assert "batch 8: p50_ms is 2.000" in text
    assert "batch 8 via triton-grpc: p50_ms is 4.000" in text
    assert "batch 1: p50_ms" not in text


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps({"text": "good " * (1 + number % 20)}) + "\n" for number in range(40)))
    return path


def test_the_lengths_of_samples_are_measured_in_two_orders_between_other_shapes(tmp_path, texts):
    exported = graphs.tiny("bert")
    shapes = ({"batch": 4, "sequence": "samples"}, {"batch": 1, "sequence": 8})
    step = Quick(shapes=shapes, against=(PLAIN,), threads=1, samples=Source(uri=texts.as_uri()), longest=16)
    out = tmp_path / "measurements"
    report = step.run(
        out, validated=exported, exported=exported, checkpoint=exported.parent / "checkpoint", samples=texts
    )
    orders = [row.samples and row.samples.order for row in report.rows]
    assert orders == ["arrival", "arrival", "sorted", "sorted", None, None]
    arrival, by_length = report.rows[0], report.rows[2]
    assert arrival.shape == shapes[0]
    assert arrival.samples.tokens == 2 * sum(min(3 + number, 16) for number in range(20))  # two special tokens
    assert arrival.samples.padding > by_length.samples.padding
    of_medians = report.rows[3].p50_ms / by_length.p50_ms  # a busy machine can slow one of two equal models
    assert of_medians / 5 < by_length.ratio_to["onnxruntime-fp32"] < 5 * of_medians
    (lengths,) = report.samples
    assert (lengths.texts, lengths.longest, lengths.limit) == (40, 16, 16)
    assert {each.batch for each in lengths.batchings} == {1, 4, 8}
    raw = json.loads((out / LATENCIES).read_text())
    assert [each.get("order") for each in raw] == orders
    assert [sum(map(len, each["rounds_ms"])) for each in raw] == [row.runs for row in report.rows]
    assert BenchReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_samples_and_the_model_s_tokenizer_count_only_where_their_lengths_are_measured():
    shapes = (Shape(axes={"batch": 1, "sequence": 32}), Shape(axes={"batch": 8}, samples="sequence"))
    options = {
        "profiles": ({"batch": [1, 2, 8], "sequence": [1, 16, 128]},),
        "validation": Validation(samples="file:/few.jsonl"),
    }
    plain = Bench.for_recipe(recipe(bench=BenchSection(shapes=shapes[:1]), **options))
    mixed = Bench.for_recipe(recipe(bench=BenchSection(shapes=shapes), **options))
    own = Bench.for_recipe(recipe(bench=BenchSection(shapes=shapes, samples="file:/own.jsonl"), **options))
    assert mixed.shapes == ({"batch": 1, "sequence": 32}, {"batch": 8, "sequence": "samples"})
    assert plain.sources() == {}
    assert (mixed.sources()["samples"].uri, own.sources()["samples"].uri) == ("file:/few.jsonl", "file:/own.jsonl")
    assert "longest" not in plain.options()
    assert mixed.options()["longest"] == 128
    assert mixed.options()["profiles"] == []  # ONNX Runtime takes every shape
    assert "checkpoint" in mixed.inputs_used()
    assert "tokenizers" in mixed.tools_used()
    assert "tokenizers" not in plain.tools_used()
    assert {*mixed.code_used()} - {*plain.code_used()} == {
        "engine.kit.bench.sample_rows", "engine.kit.bench.sample_batches",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "sizes", "padded"),
    [
        ({"runtime": "tensorrt", "device": "T4"}, [1, 2, 8], True),
        ({"runtime": "openvino"}, [1, 2, 8], False),
        ({"runtime": "openvino"}, 8, True),
    ],
)
def test_batches_are_padded_to_profiles_where_the_model_takes_no_other_shape(target, sizes, padded):
    section = BenchSection(shapes=(Shape(axes={"batch": 8}, samples="sequence"),), samples="file:/few.jsonl")
    profiles = ({"batch": sizes, "sequence": 16}, {"batch": sizes, "sequence": 32})
    step = Bench.for_recipe(recipe(target=target, profiles=profiles, bench=section))
    assert (len(step.profiles) == 2) is padded
