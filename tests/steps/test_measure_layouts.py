"""The step `measure-layouts`; tests/e2e/test_layouts.py has it on a real server."""

import models
import numpy as np
import pytest

from engine.kit.bench.interleaving import Contender
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
        ({"y": np.ones(2, np.float32) * 2}, "its y differ from the ensemble's"),
        ({"y": np.ones(3, np.float32)}, "its y differ from the ensemble's"),
        ({"z": np.ones(2, np.float32)}, "other outputs"),
        ({"y": np.array([b"a", b"b"], dtype=object)}, "its y differ from the ensemble's"),
    ],
)
def test_answers_are_compared_before_anything_is_measured(other, says):
    difference = measure_layouts._difference([contender(y=np.ones(2, np.float32)), contender(**other)], {})
    assert (difference is None) if says is None else says in difference
