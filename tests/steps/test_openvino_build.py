"""The step `openvino-build`: files of OpenVINO in fp32 and int8, the same bytes in every run."""

import json

import graphs
import numpy as np
import openvino_here  # noqa: F401 - skips where OpenVINO is missing
import peak_memory
import pytest
from onnx import helper

from engine.errors import JudgementError
from engine.kit.onnx import onnx_files
from engine.kit.quantization import fidelity
from engine.runtimes import choice
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.openvino import ir
from engine.steps.openvino_build import OpenvinoBuild
from engine.steps.quantize import Quantize

EXECUTION = Execution(runtime="openvino", options={})


def built(step, out, **inputs):
    """The report and the runner of a model that the step builds."""
    report = step.run(out, **inputs)
    return report, EXECUTION.by.runner(out, EXECUTION, threads=1)


def test_fp32_keeps_the_answers(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers(8, 16))
    report, runner = built(OpenvinoBuild(), tmp_path / "out", checked=graph)
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    expected = ort.run(ort.session(graph, threads=1), {"x": x})["y"]
    assert np.abs(runner.run({"x": x})["y"] - expected).max() < 0.05 * np.abs(expected).max()  # bf16 on some CPUs
    assert (report.quantized, report.by_row, report.looked_at) == ({}, 0, None)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(ir.FILES)


def test_a_model_that_is_quantized_already_keeps_its_precision(tmp_path):
    Quantize().run(tmp_path / "small", fused=graphs.write(tmp_path / "graph", graphs.layers(64, 128)))
    report = OpenvinoBuild(precision="int8").run(tmp_path / "out", checked=tmp_path / "small")
    assert "quantized" in report.unquantized
    assert report.looked_at is None


def test_int8_keeps_a_layer_that_the_recipe_names_in_floating_point(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers())
    step = OpenvinoBuild(precision="int8")
    plain = step.run(tmp_path / "plain", checked=graph)
    report = step.model_copy(update={"keep_in": {"fp32": ("a",)}}).run(tmp_path / "out", checked=graph)
    assert (plain.quantized, report.quantized) == ({"MatMul": 2}, {"MatMul": 1})
    assert [layer.reason for layer in report.kept] == ["`quantize.keep_in` names a"]


def test_weights_alone_in_int8_make_a_small_model_with_near_answers_and_kept_layers_keep_theirs(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers(64, 128))
    step = OpenvinoBuild(precision="int8", weights_only=True)
    report, runner = built(step, tmp_path / "out", checked=graph)
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    expected = ort.run(ort.session(graph, threads=1), {"x": x})["y"]
    assert np.abs(runner.run({"x": x})["y"] - expected).max() < 0.1 * np.abs(expected).max()
    assert (report.quantized, report.looked_at) == ({"MatMul": 2}, None)
    assert (tmp_path / "out" / ir.WEIGHTS).stat().st_size < report.bytes[0] * 0.4
    kept = step.model_copy(update={"keep_in": {"fp32": ("a",)}}).run(tmp_path / "kept", checked=graph)
    assert kept.quantized == {"MatMul": 1}
    assert [layer.reason for layer in kept.kept] == ["`quantize.keep_in` names a"]


def test_activations_get_a_scale_per_row_only_where_the_model_misses_its_goal_without(tmp_path, monkeypatch):
    graph = graphs.write(tmp_path / "graph", graphs.layers(64, 128))
    exact = OpenvinoBuild(precision="int8").run(tmp_path / "exact", checked=graph)
    monkeypatch.setattr(fidelity, "GOAL", 1.1)
    scaled = OpenvinoBuild(precision="int8").run(tmp_path / "scaled", checked=graph)
    assert (exact.by_row, scaled.by_row) == (0, 2)
    assert exact.quantized == scaled.quantized == {"MatMul": 2}


@pytest.mark.slow
def test_int8_of_minilm_keeps_its_meaning_alone_and_in_a_batch(tmp_path, minilm_exported, minilm_checkpoint):
    step = OpenvinoBuild(precision="int8", own_texts=True)
    report, runner = built(step, tmp_path / "out", checked=minilm_exported, checkpoint=minilm_checkpoint)
    assert report.quantized == {"MatMul": 36}, "the heads of 32 numbers stay in floating point"
    assert report.left == ()
    assert report.cosine.worst > 0.99
    assert report.by_row == 12
    assert report.bytes[1] < 0.3 * report.bytes[0]
    original = ort.session(minilm_exported, threads=1)
    ids = np.array([[101, 2023, 2003, 1037, 2204, 2154, 102], [101, 2748, 102, 0, 0, 0, 0]])
    inputs = {"input_ids": ids, "attention_mask": (ids > 0).astype(np.int64), "token_type_ids": ids * 0}
    expected, together = (
        each[1, :3] for each in (ort.run(original, inputs)["last_hidden_state"], states(runner, inputs))
    )
    alone = states(runner, {name: array[1:, :3] for name, array in inputs.items()})[0]
    assert cosine(together, expected) > 0.98
    assert cosine(together, alone) > 0.999
    work = runner.work(inputs)
    assert work["int8"] > 0.9 * sum(work.values())


def test_two_processes_write_the_same_bytes(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers(64, 128))
    for name in ("one", "two"):
        peak_memory.of_step(OpenvinoBuild, tmp_path / name, json.dumps({"precision": "int8"}), checked=graph)
    one, two = ([(tmp_path / name / file).read_bytes() for file in ir.FILES] for name in ("one", "two"))
    assert one == two


def test_the_axes_of_the_graph_are_named_in_the_file(tmp_path):
    graph = graphs.write(tmp_path / "graph", graphs.layers(8, 16))
    OpenvinoBuild().run(tmp_path / "out", checked=graph)
    model = ir.read(tmp_path / "out" / ir.MODEL)
    assert ir.described(model, model.inputs) == onnx_files.inputs(onnx_files.load_graph(graph))


def states(runner, inputs):
    return runner.run(inputs)["last_hidden_state"]


def cosine(one, other):
    return float((one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other))


def test_a_model_that_openvino_cannot_have_fails_a_plan_without_another_runtime(tmp_path):
    graph = graphs.graph([helper.make_node("Det", ["x"], ["d"])], [("x", graphs.FLOAT, [2, 4, 4])],
                         [("d", graphs.FLOAT, [2])])  # fmt: skip
    step = OpenvinoBuild()
    report = step.run(tmp_path / "out", checked=graphs.write(tmp_path / "graph", graph))
    assert "OpenVINO cannot read model.onnx" in choice.refusal(tmp_path / "out")
    with pytest.raises(JudgementError, match="OpenVINO cannot have this model"):
        step.judge(report)
    step.as_candidate().judge(report)
    assert step.as_candidate().options() == step.options()
