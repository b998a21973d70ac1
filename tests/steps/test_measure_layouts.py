"""The step `measure-layouts`; tests/e2e/test_layouts.py has it on a real server."""

import models
import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.choice.layouts import TimedLayout
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import Serving
from engine.machine import cuda
from engine.recipe.schema import ModelSection, PackageSection, Recipe, TargetSection, Triton
from engine.steps import measure_layouts
from engine.steps.measure_layouts import MeasureLayouts


def test_a_package_that_cannot_be_one_model_is_not_measured(tmp_path):
    models.onnx_text(tmp_path / "model.onnx")
    models.save_tokenizer(tmp_path)
    step = MeasureLayouts(serving=Serving(model_name="m", ensemble="m_text", tokenizer=False, layout="auto"), threads=1)
    report = step.run(tmp_path / "out", compiled=tmp_path, exported=tmp_path, checkpoint=tmp_path)
    assert "it is for packages that take texts" in report.absent["fused"]
    assert report.server is None


ONES = np.ones(2, np.float32)
GPU = measure_layouts._CLOSE_ON_GPUS


@pytest.mark.parametrize(
    ("other", "close", "says"),
    [
        ({"y": ONES}, measure_layouts._CLOSE, None),
        ({"y": ONES + np.float32(1e-6)}, measure_layouts._CLOSE, None),
        ({"y": ONES + np.float32(5e-3)}, measure_layouts._CLOSE, "its y differ from the other package's"),
        ({"y": ONES + np.float32(5e-3)}, GPU, None),
        ({"y": ONES + np.float32(5e-2)}, GPU, "its y differ from the other package's"),
        ({"y": np.ones(3, np.float32)}, GPU, "its y differ from the other package's"),
        ({"z": ONES}, GPU, "other outputs"),
        ({"y": np.array([b"a", b"b"], dtype=object)}, GPU, "its y differ from the other package's"),
    ],
)
def test_answers_are_compared_before_anything_is_measured(other, close, says):
    difference = measure_layouts._difference({"y": ONES}, other, close=close)
    assert (difference is None) if says is None else says in difference


def test_where_padding_is_not_possible_the_reason_is_kept(tmp_path):
    models.onnx_text(tmp_path / "model.onnx", mask=False)
    models.save_tokenizer(tmp_path)
    serving = Serving(
        model_name="m", ensemble="m_text", task="text-classification", padding="auto", lengths={"sequence": (8, 16)}
    )
    report = MeasureLayouts(serving=serving, threads=1).run(
        tmp_path / "out", compiled=tmp_path, exported=tmp_path, checkpoint=tmp_path
    )
    assert "the model has no attention_mask" in report.absent["buckets"]
    assert list(report.layouts) == ["ensemble"]
    assert report.paddings == {}


@pytest.mark.parametrize(
    ("longest", "lengths"),
    [(1, []), (2, []), (10, [8, 9, 10]), (16, [8, 9, 10, 11, 12, 13, 14, 16]), (128, [8, 12, 18, 26, 39, 58, 86, 128])],
)
def test_texts_of_many_lengths_are_sent_short_ones_more_often(tmp_path, longest, lengths):
    models.onnx_text(tmp_path / "model.onnx")
    graph = onnx_files.load_graph(tmp_path)
    cases = measure_layouts._cases(graph, [{"batch": 1, "sequence": longest}])
    mixed = [case for case in cases if "lengths" in case.shape]
    assert [case.clients for case in mixed] == ([1, 8] if lengths else [])
    for case in mixed:
        assert [request["input_ids"].shape for request in case.requests] == [(1, length) for length in lengths]


def test_the_smallest_and_the_largest_shape_are_sent_by_one_client_and_by_several(tmp_path):
    models.onnx_text(tmp_path / "model.onnx")
    shapes = [{"batch": batch, "sequence": sequence} for batch, sequence in ((2, 8), (1, 4), (1, 9), (3, 12))]
    cases = measure_layouts._cases(onnx_files.load_graph(tmp_path), shapes)
    sizes = [(case.shape.get("batch"), case.shape.get("sequence"), case.clients) for case in cases]
    assert sizes == [(1, 4, 1), (1, 4, 8), (3, 12, 1), (3, 12, 8), (None, None, 1), (None, None, 8)]


def test_requests_are_drawn_once_for_layouts_and_paddings(tmp_path, monkeypatch):
    models.onnx_text(tmp_path / "model.onnx")
    models.save_tokenizer(tmp_path)
    drawn, real = [], measure_layouts._of_many_lengths

    def draw(graph, shapes):
        drawn.append(shapes)
        return real(graph, shapes)

    def timed(_self, _packages, options, _cases):
        return {name: TimedLayout() for name in options}, None

    monkeypatch.setattr(measure_layouts._Packages, "why_not", lambda *_: None)
    monkeypatch.setattr(measure_layouts, "_of_many_lengths", draw)
    monkeypatch.setattr(MeasureLayouts, "_timed", timed)
    options = {"layout": "auto", "padding": "auto", "lengths": {"sequence": (8, 16)}, "largest": {"sequence": 16}}
    serving = Serving(model_name="m", ensemble="m_text", task="text-classification", **options)
    report = MeasureLayouts(serving=serving, threads=1, shapes=({"batch": 1, "sequence": 16},)).run(
        tmp_path / "out", compiled=tmp_path, exported=tmp_path, checkpoint=tmp_path
    )
    assert report.absent == {}
    assert list(report.layouts) == ["ensemble", "fused"]
    assert list(report.paddings) == ["none", "buckets"]
    assert len(drawn) == 1


def planned(**target):
    profiles = ({"batch": 1, "sequence": 16},)
    triton = Triton(layout="auto")
    recipe = Recipe(
        name="m", model=ModelSection(source="x"), target=TargetSection(**target), profiles=profiles,
        package=PackageSection(triton=triton),
    )  # fmt: skip
    return MeasureLayouts.for_recipe(recipe)


def test_packages_for_a_gpu_are_measured_on_that_gpu():
    on_cpu, on_gpu = planned(device="cpu"), planned(device="T4", runtime="onnxruntime", provider="cuda")
    assert on_cpu.hardware() is None
    assert str(on_gpu.hardware()) == "T4 (sm_75) with onnxruntime-gpu"
    assert "device.name" in on_gpu.facts_used()
    assert "onnxruntime-gpu" in on_gpu.tools_used()
    assert [bool(step.serving.profiles) for step in (on_cpu, on_gpu)] == [False, True]
    assert "gpu" not in on_cpu.options()


def test_without_the_gpu_nothing_is_measured(tmp_path, monkeypatch):
    models.onnx_text(tmp_path / "model.onnx")
    monkeypatch.setattr(cuda, "devices", tuple)
    step = planned(device="T4", runtime="onnxruntime", provider="cuda")
    with pytest.raises(StepError, match="There is no GPU here"):
        step.run(tmp_path / "out", compiled=tmp_path, exported=tmp_path, checkpoint=tmp_path)
