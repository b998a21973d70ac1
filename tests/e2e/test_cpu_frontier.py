"""The contest of int8 models on a CPU: how its ratios, its accuracies and its verdicts are computed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))

from frontier import accuracy, instructions, load, texts, verdicts
from frontier.accuracy import Accuracy
from frontier.contenders import Contender
from frontier.measuring import Timings
from frontier.subjects import SUBJECTS

from engine.machine import cpu

AUTO, ORT = verdicts.OURS_BEST, verdicts.OURS_ORT
EXACT = Accuracy(0.999, 0.995, 0.999, 0.995, 0.9999, 0.99, 1000)


def timings(**milliseconds):
    """Three processes of ten rounds in which each contender takes its time, with a noise that all share."""
    noise = np.random.default_rng(0).uniform(1, 2, (3, 10))
    return Timings(tuple({name: list(time * row) for name, time in milliseconds.items()} for row in noise), others=0.0)


def test_a_ratio_is_of_the_same_rounds_so_shared_noise_falls_out():
    ratio = timings(one=2.0, other=4.0).ratio("one", "other")
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((0.5, 0.5, 0.5))
    assert str(ratio.inverse()) == "2.00 (2.00 to 2.00)"


def test_noise_of_one_contender_widens_the_interval():
    noisy = timings(one=2.0)
    steady = Timings(tuple({**each, "other": [3.0] * 10} for each in noisy.processes), others=0.0)
    ratio = steady.ratio("one", "other")
    assert ratio.low < ratio.median < ratio.high


def test_a_measurement_beside_other_work_is_busy():
    assert not Timings((), others=load.ALLOWED).busy
    assert Timings((), others=2 * load.ALLOWED).busy


@pytest.mark.parametrize(
    ("flags", "isa"), [("fma avx2", "avx2"), ("avx2 avx512f avx512_vnni", None), ("avx2 avx_vnni", None)]
)
def test_recipes_name_avx2_on_a_cpu_without_vnni(monkeypatch, flags, isa):
    monkeypatch.setattr(cpu, "description", lambda: {"flags": flags})
    assert instructions.target() == isa
    text = SUBJECTS["minilm"].recipe(
        "m", "auto", fixed=["1x16"], samples=Path("s.jsonl"), calibration=None, isa=instructions.target()
    )
    assert json.loads(text)["target"].get("isa") == isa


def test_an_invalid_contender_is_no_peer_however_fast():
    contenders = [
        Contender(AUTO, "ours", "ours"), Contender("fast", "onnx", "olive"), Contender("right", "onnx", "optimum"),
    ]  # fmt: skip
    wrong = Accuracy(0.4, 0.1, 0.4, 0.1, 1.0, 0.2, 1000)
    at = {1: {"1x16": timings(**{AUTO: 2.0, "fast": 1.0, "right": 4.0})}}
    results = verdicts.Results(contenders, {AUTO: EXACT, "fast": wrong, "right": EXACT}, at)
    [judged] = [
        each for each in verdicts.of_tuned_subject(results) if "right at 1x16" in each.what and AUTO in each.what
    ]
    assert judged.measured.startswith("0.50")
    assert judged.kept
    assert not any("fast" in each.what for each in verdicts.of_tuned_subject(results))


@pytest.mark.parametrize(("time", "word"), [(3.9, "kept"), (4.1, "kept"), (4.3, "BROKEN")])
def test_another_subject_may_be_five_percent_slower_than_the_best_peer(time, word):
    contenders = [Contender(AUTO, "ours", "ours"), Contender("peer", "onnx", "olive")]
    results = verdicts.Results(
        contenders, {AUTO: EXACT, "peer": EXACT}, {1: {"8x128": timings(**{AUTO: time, "peer": 4.0})}}
    )
    accurate, fast = verdicts.of_other_subject(results)
    assert accurate.word == "kept"
    assert fast.word == word


def test_a_bound_inside_the_interval_is_open():
    low, high = verdicts.interval(0.946, 1000)
    assert (low, high) == pytest.approx((0.9302, 0.9584), abs=1e-4)
    for share, word in ((0.946, "open"), (0.92, "BROKEN"), (0.98, "kept")):
        judged = Accuracy(0.999, 0.995, 0.999, 0.995, 0.9999, share, 1000)
        last = list(verdicts.of_tuned_subject(verdicts.Results([], {AUTO: judged}, {})))[-1]
        assert last.word == word


def test_a_model_that_was_refused_is_no_silent_miss():
    refused = [Contender(AUTO, "ours", "ours", absent="exit 4: cosine .91")]
    [judged] = verdicts.of_other_subject(verdicts.Results(refused, {}, {}))
    assert judged.measured == "no model: exit 4: cosine .91"


def test_accuracies_are_of_each_sentence_alone_and_in_its_batch():
    generator = np.random.default_rng(0)
    truth = generator.normal(size=(20, 8))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    turned = truth.copy()
    turned[3] = -turned[3]
    same, other = accuracy.compared(truth, truth, truth), accuracy.compared(truth, truth, turned)
    assert (same.mean, same.worst_in_batch, same.neighbours) == pytest.approx((1, 1, 1))
    assert same.valid
    assert other.worst == pytest.approx(1)
    assert other.worst_in_batch == pytest.approx(-1)
    assert other.alone_in_batch == pytest.approx(-1)
    assert not other.valid


def test_the_embedding_of_a_sentence_is_the_mean_of_its_tokens_without_padding():
    hidden = np.array([[[3.0, 0.0], [0.0, 3.0], [9.0, 9.0]]])
    [embedding] = accuracy.embedded([hidden], [{"attention_mask": np.array([[1, 1, 0]])}])
    assert embedding == pytest.approx([0.5**0.5, 0.5**0.5])


def test_the_sentences_are_seeded_and_none_is_a_sample():
    first = texts.draw(40, [])
    assert texts.draw(40, []) == first
    assert len(set(first)) == 40
    assert not set(texts.draw(40, first[:10])) & set(first[:10])


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_the_recipe_of_each_subject_is_json_with_a_profile_for_each_shape(name, tmp_path):
    subject = SUBJECTS[name]
    recipe = json.loads(
        subject.recipe("x", "auto", fixed=subject.shapes, samples=tmp_path / "samples.jsonl", calibration=None)
    )
    assert len(recipe["profiles"]) == len(subject.shapes) > 0
    assert recipe["precision"] == "int8"
