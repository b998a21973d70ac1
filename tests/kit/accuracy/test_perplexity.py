"""Perplexity: the number that PyTorch's loss gives, of the original and of the built model, judged by their ratio."""

import json
import math

import numpy as np
import pytest

from engine.errors import JudgementError
from engine.kit.accuracy import perplexity
from engine.recipe.values import Bound
from engine.reporting import Number, lines
from engine.steps.validate import Validate

TOKENS = [number * number % 50 for number in range(150)]


def answering(change=lambda logits: logits):
    """Return a model that answers with logits that depend on the tokens it sees, and count its calls."""
    table = np.random.default_rng(0).standard_normal((50, 50)).astype(np.float32)

    def answer(inputs):
        assert inputs["attention_mask"].all()
        return {"logits": change(table[inputs["input_ids"]])}

    return answer


def compared(tmp_path, change=lambda logits: logits, original=lambda logits: logits):
    perplexity.of_original(answering(original), TOKENS, 48, tmp_path)
    return perplexity.of_built(answering(change), tmp_path)


def test_the_number_is_the_exponential_of_pytorchs_loss(tmp_path):
    import torch

    measured = compared(tmp_path)
    logits = torch.from_numpy(answering()({"input_ids": np.array(TOKENS), "attention_mask": np.ones(1)})["logits"])
    loss = torch.nn.functional.cross_entropy(logits[:-1].double(), torch.tensor(TOKENS[1:]))
    assert measured.value == pytest.approx(math.exp(float(loss)), rel=1e-9)
    assert measured.ratio == 1
    assert (measured.tokens, measured.length, measured.stride) == (149, 48, 24)


def test_a_model_that_predicts_less_has_a_larger_ratio(tmp_path):
    measured = compared(tmp_path, lambda logits: logits * 0)
    assert measured.value == pytest.approx(50)
    assert measured.ratio == pytest.approx(measured.value / measured.original)
    shown = measured.line(Number("perplexity", digits=4, significant=True))
    assert shown.startswith(f"perplexity 50, the original {measured.original:.4g}, ratio {measured.ratio:.4g} (149 tok")


def test_a_reference_without_a_text_has_no_perplexity(tmp_path):
    assert perplexity.of_built(answering(), tmp_path) is None


@pytest.mark.parametrize("side", ["original", "change"])
def test_logits_that_are_not_finite_never_pass(side, tmp_path):
    measured = compared(tmp_path, **{side: lambda logits: logits * np.float32("nan")})
    assert measured.ratio is None
    json.dumps(measured.__dict__, allow_nan=False)
    step, report = judged(measured)
    with pytest.raises(JudgementError, match="NaN"):
        step.judge(report)


def test_a_model_beyond_all_measure_is_a_number_that_json_holds(tmp_path):
    measured = compared(tmp_path, lambda logits: logits * 1e6)
    assert measured.ratio > 1e100
    json.dumps(measured.__dict__, allow_nan=False)


def judged(measured, **bounds):
    from engine.kit.accuracy.report import AccuracyReport

    return Validate(**bounds), AccuracyReport(cases=1, kinds={}, random=False, perplexity=measured)


def test_a_ratio_above_its_bound_is_missed_with_both_numbers(tmp_path):
    measured = compared(tmp_path, lambda logits: logits * 3)
    step, report = judged(measured, perplexity=Bound(at_most=1.0001), precision="int4")
    with pytest.raises(JudgementError) as caught:
        step.judge(report)
    assert "the ratio of the perplexities (perplexity)" in caught.value.what
    assert f"of the original {measured.original:.6g}, 149 tokens" in caught.value.what
    assert next(lines(report)).startswith("perplexity ")


def test_without_a_bound_the_default_of_the_precision_judges(tmp_path):
    measured = compared(tmp_path, lambda logits: logits * 1.02)
    assert 1.001 < measured.ratio < 1.05
    step, report = judged(measured, precision="int8")
    step.judge(report)
    with pytest.raises(JudgementError):
        judged(measured)[0].judge(report)


def test_a_bound_without_a_measurement_is_an_error():
    step, report = judged(None, perplexity=Bound(at_most=1.1))
    with pytest.raises(JudgementError, match="could not be measured"):
        step.judge(report)
