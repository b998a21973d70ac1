"""Perplexity: the number that PyTorch's loss gives, of the original and of the built model, judged by their ratio."""

import json
import math

import generators
import numpy as np
import pytest

from engine.errors import JudgementError, StepError
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


PROSE = "The cat sat on the mat and looked at the dog, who slept. " * 40


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "perplexity.txt is empty"),
        (b" \n\t\n" * 99, "perplexity.txt is empty"),
        (b"too short", "perplexity.txt is too short for a perplexity"),
        (b"\xff\xfe" * 999, "perplexity.txt is no UTF-8 text"),
        (b"text \0 and zeros" * 99, "perplexity.txt is no text"),
    ],
)
def test_what_is_no_text_is_refused(content, what, tmp_path):
    (tmp_path / "perplexity.txt").write_bytes(content)
    with pytest.raises(StepError) as caught:
        perplexity.text_of(tmp_path / "perplexity.txt")
    assert caught.value.what == what


def test_a_text_that_is_cut_inside_a_letter_is_text(tmp_path):
    (tmp_path / "perplexity.txt").write_text("é" * 20_000, "utf-8")
    assert perplexity.text_of(tmp_path / "perplexity.txt", limit=129).count("é") == 129 * 64 // 2
    (tmp_path / "perplexity.txt").write_text("x" + "é" * 20_000, "utf-8")
    assert perplexity.text_of(tmp_path / "perplexity.txt", limit=129).count("é") == 129 * 64 // 2 - 1


def test_no_more_tokens_are_read_than_the_limit_and_few_are_refused(tmp_path):
    generators.save_tokenizer(tmp_path, "gpt2")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "perplexity.txt").write_text(PROSE)
    whole = perplexity.tokens_of(tmp_path / "perplexity.txt", tmp_path)
    assert len(whole) > 200
    assert perplexity.tokens_of(tmp_path / "perplexity.txt", tmp_path, limit=150) == whole[:150]
    (tmp_path / "perplexity.txt").write_text(PROSE[:200])
    with pytest.raises(StepError, match="too short for a perplexity") as caught:
        perplexity.tokens_of(tmp_path / "perplexity.txt", tmp_path)
    assert "tokens; at least 128 tokens are needed" in caught.value.facts[0]


def test_a_model_without_a_tokenizer_has_no_perplexity(tmp_path):
    (tmp_path / "perplexity.txt").write_text(PROSE)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(StepError, match="the model has no tokenizer"):
        perplexity.tokens_of(tmp_path / "perplexity.txt", tmp_path / "model")


@pytest.mark.parametrize("count", [128, 129, 255, 256, 257, 384, 385, 1000])
@pytest.mark.parametrize("longest", [None, 48, 33, 1024])
def test_windows_score_each_token_but_the_first_once_with_half_a_window_before_it(count, longest):
    length = perplexity.window_length(longest)
    scored = []
    for window in perplexity.windows(count, longest):
        assert window.end - window.start <= length
        assert window.start == 0 or window.seen >= length // 2
        scored += range(window.start + window.seen, window.end)
    assert scored == list(range(1, count))
