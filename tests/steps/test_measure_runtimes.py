"""The step `measure-runtimes`: accuracy and latency of all candidates, in turns."""

import json

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import pytest

from engine.kit.bench.interleaving import Budget
from engine.kit.choice.candidates import CandidatesReport
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.recipe.schema import BenchSection, ModelSection, Recipe, Shape, TargetSection
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.step import REPORT
from engine.steps.measure_runtimes import MeasureRuntimes
from engine.steps.openvino_build import OpenvinoBuild


class Quick(MeasureRuntimes):
    """The real step, in less time."""

    budget = Budget(seconds=0.2, warm_up=0.1, rounds=4)


def recipe(**fields):
    return Recipe(name="m", model=ModelSection(source="net.onnx"), target=TargetSection(runtime="auto"), **fields)


@pytest.fixture
def net(tmp_path):
    """A network, its reference, and its model for OpenVINO."""
    graph = graphs.write(tmp_path / "net", graphs.layers(16, 32))
    session = ort.session(graph, threads=1)
    inputs = [{"x": np.random.default_rng(n).standard_normal((1, 16)).astype(np.float32)} for n in range(4)]
    cases.save([Case(f"line {n}", "", "sample", x, ort.run(session, x)) for n, x in enumerate(inputs)],
               tmp_path / "reference")  # fmt: skip
    OpenvinoBuild().run(tmp_path / "openvino", checked=graph)
    return tmp_path


def test_each_candidate_has_its_accuracy_and_its_rounds_at_every_shape(net):
    step = Quick(
        candidates=("onnxruntime", "openvino"), execution=Execution.for_recipe(recipe()), threads=1,
        shapes=({"batch": 1}, {"batch": 4}),
    )  # fmt: skip
    report = step.run(
        net / "out", reference=net / "reference", exported=net / "net", checkpoint=net / "net",
        model_onnxruntime=net / "net", model_openvino=net / "openvino",
    )  # fmt: skip
    assert list(report.candidates) == ["onnxruntime", "openvino"]
    for candidate in report.candidates.values():
        assert candidate.accuracy.cosine.worst > 0.999
        assert candidate.accuracy.bytes > 0
        assert [(each.shape["batch"], len(each.rounds_ms)) for each in candidate.latencies] == [(1, 4), (4, 4)]
        assert all(time > 0 for each in candidate.latencies for time in each.rounds_ms)
    assert CandidatesReport.from_json(json.loads((net / "out" / REPORT).read_text())) == report
    assert [path.name for path in (net / "out").iterdir()] == [REPORT]


def test_the_shapes_are_those_of_bench_or_else_of_the_profiles():
    profiles = [{"batch": [1, 2, 4], "sequence": [1, 16, 32]}, {"batch": [1, 2, 8], "sequence": [1, 16, 64]}]
    usual = MeasureRuntimes.for_recipe(recipe(profiles=profiles))
    assert usual.shapes == ({"batch": 2, "sequence": 16},)
    bench = BenchSection(shapes=(Shape(batch=1),), threads=3)
    named = MeasureRuntimes.for_recipe(recipe(profiles=profiles, bench=bench))
    assert (named.shapes, named.threads) == (({"batch": 1, "sequence": 16},), 3)


def test_a_recipe_that_names_its_runtime_measures_none():
    assert MeasureRuntimes.for_recipe(recipe().as_run_by("openvino")) is None


def test_no_bound_is_a_row_of_the_key():
    assert "cosine" not in MeasureRuntimes.for_recipe(recipe()).options()
