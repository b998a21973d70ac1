"""The step `measure-layouts`; tests/e2e/test_layouts.py has it on a real server."""

import models
import numpy as np
import pytest

from engine.kit.bench.interleaving import Contender
from engine.kit.onnx import onnx_files
from engine.kit.triton.serving import Serving
from engine.steps import measure_layouts
from engine.steps.measure_layouts import MeasureLayouts


def test_a_package_that_cannot_be_one_model_is_not_measured(tmp_path):
    models.onnx_text(tmp_path / "model.onnx")
    models.save_tokenizer(tmp_path)
    step = MeasureLayouts(serving=Serving(model_name="m", ensemble="m_text", tokenizer=False, layout="auto"), threads=1)
    report = step.run(tmp_path / "out", compiled=tmp_path, exported=tmp_path, checkpoint=tmp_path)
    assert "it is for packages that take texts" in report.absent["fused"]
    assert report.server is None


def contender(**outputs):
    return Contender(runtime="r", via="v", ours=True, prepare=lambda _: lambda: outputs)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"y": np.ones(2, np.float32)}, None),
        ({"y": np.ones(2, np.float32) + np.float32(1e-6)}, None),
        ({"y": np.ones(2, np.float32) * 2}, "its y differ from the other package's"),
        ({"y": np.ones(3, np.float32)}, "its y differ from the other package's"),
        ({"z": np.ones(2, np.float32)}, "other outputs"),
        ({"y": np.array([b"a", b"b"], dtype=object)}, "its y differ from the other package's"),
    ],
)
def test_answers_are_compared_before_anything_is_measured(other, says):
    difference = measure_layouts._difference([contender(y=np.ones(2, np.float32)), contender(**other)], {})
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
    ("longest", "lengths"), [(2, [2]), (16, [8, 9, 10, 11, 12, 13, 14, 15, 16]), (64, [8, 12, 16])]
)
def test_texts_of_many_lengths_are_sent(tmp_path, longest, lengths):
    models.onnx_text(tmp_path / "model.onnx")
    graph = onnx_files.load_graph(tmp_path)
    requests = measure_layouts._of_many_lengths(graph, [{"sequence": longest}, {"sequence": 1}])
    sizes = [request["input_ids"].shape for request in requests]
    assert sizes[: len(lengths)] == [(1, length) for length in lengths]
    assert sizes[-1] == (1, longest)
