"""The accuracy of a built model in its runtime: the same numbers for `validate` and for the choice of a runtime."""

import random

import graphs
import numpy as np

from engine.kit.accuracy import built_model
from engine.kit.accuracy.report import PrecisionShares
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import session as ort


def test_a_model_is_compared_with_the_reference_counted_and_weighed(tmp_path):
    graph = graphs.write(tmp_path / "net", graphs.layers(16, 32))
    x = {"x": np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)}
    cases.save([Case("line 1", "", "sample", x, ort.run(ort.session(graph, threads=1), x))], tmp_path / "reference")
    report = built_model.measure(
        graph, Execution(), reference=tmp_path / "reference", checkpoint=graph, task=None, opt={"batch": 2}
    )
    assert report.cosine.worst > 0.999999
    assert report.work.shares == {"fp32": 1.0}
    assert report.work.shape == {"batch": 2}
    assert report.bytes == (graph / "model.onnx").stat().st_size


INT8 = PrecisionShares({"int8": 0.9, "fp32": 0.1}, {})


def test_a_few_samples_of_a_rounded_model_have_a_note_with_the_share_that_they_cannot_rule_out():
    [note] = built_model._note_on_few_samples({"tensors": 32, "random": 4}, INT8)
    assert note.startswith("32 samples")
    assert "up to 9%" in note
    assert built_model._note_on_few_samples({"sample": 59}, INT8) == ()  # they rule out 5 %
    assert built_model._note_on_few_samples({"random": 4}, INT8) == ()  # a report of random inputs says so already
    assert built_model._note_on_few_samples({"sample": 3}, PrecisionShares({"fp32": 1.0}, {})) == ()
    assert built_model._note_on_few_samples({"sample": 3}, None) == ()


def test_the_share_is_one_that_samples_hide_in_one_of_twenty_draws():
    generator = random.Random(0)
    hidden = sum(all(generator.random() >= 0.0894 for _ in range(32)) for _ in range(4000)) / 4000
    assert 0.035 < hidden < 0.065
