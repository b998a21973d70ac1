"""CUDA graphs in measurements, with a fake of ONNX Runtime's CUDA provider: what is measured, and what is refused."""

import executions
import fake_cuda_provider
import graphs
import numpy as np
import pytest
from onnx import helper

from engine.errors import JudgementError
from engine.kit.bench.interleaving import Budget
from engine.kit.bench.report import BenchReport
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.recipe.schema import BenchSection, ModelSection, Recipe, RivalSection, Shape, TargetSection
from engine.runtimes import requirements
from engine.runtimes.onnxruntime import session as ort
from engine.steps.bench import Bench
from engine.steps.measure_runtimes import MeasureRuntimes

ON_T4 = executions.execution("cuda", hardware=requirements.on(["T4"], tool="onnxruntime-gpu"))
PLAIN = RivalSection(runtime="onnxruntime")


class Quick(Bench):
    """The real step, in less time."""

    budget = Budget(seconds=0.3, warm_up=0.1, rounds=5)


class QuickCandidates(MeasureRuntimes):
    """The real step, in less time."""

    budget = Quick.budget


@pytest.fixture
def device(monkeypatch):
    return fake_cuda_provider.install(monkeypatch)


@pytest.fixture
def layers(tmp_path):
    return graphs.write(tmp_path / "layers", graphs.layers())


def measured(tmp_path, model, *kinds, **fields):
    """Measure a model at a shape for each of `kinds`, which are "fixed" or "free"."""
    shapes = tuple({"batch": 8 * (number + 1)} for number in range(len(kinds)))
    fields = {"name_of_ours": "onnxruntime-fp16", "shapes": shapes, "threads": 1, **fields}
    step = Quick(execution=ON_T4, in_graph=tuple(kind == "fixed" for kind in kinds), **fields)
    report = step.run(tmp_path / "out", validated=model, exported=model, checkpoint=model)
    step.judge(report)
    return BenchReport.from_json(report.to_json())


def titles(report):
    return [row.title for row in report.rows]


def test_the_graph_is_ours_at_a_fixed_shape_and_stands_beside_ours_at_a_free_one(device, layers, tmp_path, capsys):
    report = measured(tmp_path, layers, "fixed", "free")
    assert titles(report) == [
        "onnxruntime-fp16-graph (ours)", "onnxruntime-fp16-no-graph", "onnxruntime-fp16 (ours)",
        "onnxruntime-fp16-graph",
    ]  # fmt: skip
    assert [(row.ours, row.other_way, row.graph is not None) for row in report.rows] == [
        (True, False, True), (False, True, False), (True, False, False), (False, True, True),
    ]  # fmt: skip
    assert [list(row.ratio_to) for row in report.rows] == [
        ["onnxruntime-fp16-no-graph"], [], ["onnxruntime-fp16-graph"], [],
    ]  # fmt: skip
    assert report.unmeasured == ()
    printed = capsys.readouterr().out
    for row in (report.rows[0], report.rows[3]):
        bytes_of_tensors = 4 * row.shape["batch"] * (64 + 4)
        assert row.graph.memory_bytes == fake_cuda_provider.BYTES_OF_A_GRAPH + bytes_of_tensors
        assert f"CUDA graph for batch {row.shape['batch']}: captured in {row.graph.capture_s:.2f} s, 1.0 MiB" in printed
    assert device.diary.count("open with graphs") == 2, "a session for each shape"


def test_a_report_without_graphs_is_what_it_was(device, layers, tmp_path):
    [row] = measured(tmp_path, layers, shapes=({"batch": 8},)).to_json()["rows"]
    assert not {"graph", "other_way"} & row.keys(), "older reports have no such fields and stay readable"
    assert device.diary == ["open without graphs"]


def test_a_rival_of_the_same_name_keeps_its_own_ratio(device, layers, tmp_path):
    report = measured(tmp_path, layers, "fixed", against=(PLAIN,), name_of_ours="onnxruntime-fp32")
    assert titles(report) == ["onnxruntime-fp32-graph (ours)", "onnxruntime-fp32-no-graph", "onnxruntime-fp32"]
    assert list(report.rows[0].ratio_to) == ["onnxruntime-fp32-no-graph", "onnxruntime-fp32"]


def test_a_budget_is_judged_by_the_way_that_is_the_default(device, layers, tmp_path, monkeypatch):
    budgets = ({"p50_ms": 1e-6}, {"p50_ms": 1e-6})
    with pytest.raises(JudgementError) as caught:
        measured(tmp_path, layers, "fixed", "free", budgets=budgets)
    missed = [line for line in (caught.value.what, *caught.value.facts) if "over its budget" in line]
    assert len(missed) == 2
    assert "batch 8 in a CUDA graph: p50_ms" in missed[0]
    assert "batch 16: p50_ms" in missed[1]


def of_one_node(tmp_path, kind, **attributes):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node(kind, ["a"], ["y"], **attributes),
    ]
    ends = [("x", graphs.FLOAT, ["batch", 8])], [("y", graphs.FLOAT, ["batch", 4])]
    return graphs.write(tmp_path / kind, graphs.graph(nodes, *ends, [graphs.weight("w", 8, 4)]))


@pytest.mark.parametrize(("place", "reason"), [
    ("on_cpu", "all compute graph nodes have not been partitioned to the CUDAExecutionProvider"),
    ("waiting", "ONNX Runtime cannot capture the model into a CUDA graph; CUDA failure 900"),
])  # fmt: skip
def test_what_cannot_be_captured_is_measured_without_a_graph_and_the_report_says_why(device, tmp_path, place, reason):
    getattr(device, place).add("Erf")
    report = measured(tmp_path, of_one_node(tmp_path, "Erf"), "fixed", "free")
    assert titles(report) == ["onnxruntime-fp16 (ours)"] * 2
    assert [(each.runtime, each.shape["batch"]) for each in report.unmeasured] == [
        ("onnxruntime-fp16-graph", 8), ("onnxruntime-fp16-graph", 16),
    ]  # fmt: skip
    assert all(reason in each.reason for each in report.unmeasured)
    assert all("onnxruntime-gpu" not in each.reason for each in report.unmeasured), "it is installed"


@pytest.mark.parametrize("wrong", [
    lambda outputs: [array * 1.1 for array in outputs],
    lambda outputs: [array * np.nan for array in outputs],
])  # fmt: skip
def test_a_graph_that_answers_otherwise_is_not_measured(device, layers, tmp_path, wrong):
    device.replays_answer = wrong
    report = measured(tmp_path, layers, "fixed")
    assert titles(report) == ["onnxruntime-fp16 (ours)"]
    assert report.unmeasured[0].reason == "answers differ; with and without the CUDA graph: y"


def test_a_graph_that_keeps_the_answers_of_its_capture_is_not_measured(device, layers, tmp_path):
    first = []
    device.replays_answer = lambda outputs: first.append(outputs) or first[0]
    assert "answers differ" in measured(tmp_path, layers, "fixed").unmeasured[0].reason


def recipe(*profiles, via=("in-process",), provider="cuda", device="T4", shapes=()):
    target = {"device": device, "runtime": "onnxruntime", "provider": provider}
    bench = BenchSection(via=via, shapes=tuple(Shape(axes=axes) for axes in shapes))
    model = ModelSection(source="hf:a/b")
    return Bench.for_recipe(Recipe(name="m", model=model, target=target, bench=bench, profiles=profiles))


FIXED, FREE = {"batch": 8, "sequence": 128}, {"batch": [1, 8, 32], "sequence": [1, 64, 128]}


def test_a_shape_is_fixed_where_a_profile_has_one_size_for_each_axis():
    assert recipe(FIXED, FREE).in_graph == (True, False)
    half = {"batch": 8, "sequence": [1, 64, 128]}
    assert recipe(half).in_graph == (False,)
    shapes = ({"batch": 8, "sequence": 128}, {"batch": 8, "sequence": 64}, {"sequence": 128})
    assert recipe(FIXED, FREE, shapes=shapes).in_graph == (True, False, True)
    assert recipe().in_graph == (False,)


def test_only_keys_of_models_with_graphs_have_the_row():
    assert recipe(FIXED).options()["in_graph"] == [True]
    assert "in_graph" not in recipe(FIXED, provider="tensorrt").options()
    assert "in_graph" not in recipe(FIXED, via=("triton-grpc",)).options()
    assert "in_graph" not in recipe(FIXED, provider="cpu", device="cpu").options()
    shape = ({"batch": 8, "sequence": 64},)
    one, other, fixed = (
        recipe(profile, shapes=shape).options()
        for profile in (FREE, {**FREE, "batch": [2, 4, 8]}, {"batch": 8, "sequence": 64})
    )
    assert one == other
    assert [name for name in one if one[name] != fixed[name]] == ["in_graph"]


@pytest.mark.parametrize(("profile", "captures"), [({"batch": 8}, 1), ({"batch": [1, 8, 8]}, 0)])
def test_candidates_run_in_a_graph_at_a_shape_that_the_recipe_fixes(profile, captures, device, layers, tmp_path):
    recipe = Recipe(
        name="m", model=ModelSection(source="net.onnx"), target=TargetSection(device="T4", runtime="auto"),
        profiles=[profile], bench=BenchSection(shapes=(Shape(batch=8),), threads=1),
    )  # fmt: skip
    session = ort.session(layers, threads=1)
    [taken] = session.get_inputs()
    x = {taken.name: np.ones([8, *taken.shape[1:]], np.float32)}
    cases.save([Case("line 1", "", "sample", x, ort.run(session, x))], tmp_path / "reference")
    step = QuickCandidates.for_recipe(recipe)
    places = dict.fromkeys(("exported", "checkpoint", "model_onnxruntime"), layers)
    report = step.run(tmp_path / "out", reference=tmp_path / "reference", **places)
    assert device.diary.count("capture 1") == captures
    assert ("replay 1" in device.diary) is bool(captures)
    assert [list(report.candidates), report.gpu] == [["onnxruntime"], fake_cuda_provider.NAME]
    assert "in_graph" in step.options()
