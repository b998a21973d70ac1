"""Answers of a server beside those that the original's outputs give, without a server."""

import json
from dataclasses import replace

import models
import numpy as np
import pytest

from engine.client.model_metadata import ModelMetadata, TensorMetadata
from engine.errors import JudgementError, StepError
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving
from engine.runtimes.onnxruntime import session as ort
from engine.server import served_accuracy
from engine.server.served_accuracy import PackageParts, ReferenceRequest, ServedDistance
from engine.steps.reference import Reference
from engine.steps.validate import Validate

TEXTS = ("a good film", "the plot | was bad", "where is it?", "film " * 60)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A classifier of texts and its package, whose longest text has 16 tokens."""
    folder = tmp_path_factory.mktemp("parts")
    models.onnx_text(folder / "model" / "model.onnx")
    models.save_tokenizer(folder / "model")
    serving = Serving(
        model_name="m", ensemble="m_text", task="text-classification", largest={"batch": 4, "sequence": 16}
    )
    repository.write(folder / "package", serving, validated=folder / "model", checkpoint=folder / "model")
    return PackageParts(folder / "package", folder / "model", folder / "model", serving)


@pytest.fixture(scope="module")
def reference(parts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    samples = folder / "samples.jsonl"
    samples.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    Reference(task="text-classification", onnx=True).run(folder / "cases", checkpoint=parts.checkpoint, samples=samples)
    return folder / "cases"


def of_text(texts_a_row=1):
    return ModelMetadata("m_text", (TensorMetadata("TEXT", "BYTES", (-1, texts_a_row)),), ())


def test_each_text_that_is_not_cut_is_a_request_with_an_answer_of_the_original_s_outputs(parts, reference):
    requests = served_accuracy.requests_of(of_text(), reference, parts)
    assert [each.arrays["TEXT"].tolist() for each in requests] == [[[text.encode()]] for text in TEXTS[:3]]
    first = requests[0]
    logits = ort.run(ort.session(parts.exported, threads=1), first.case.inputs)["logits"]
    shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
    assert np.allclose(first.case.outputs["scores"], -np.sort(-shares, axis=1), atol=1e-6)
    assert first.case.outputs["labels"][0, 0] == str(logits.argmax()).encode()


def test_the_place_between_two_texts_is_known_by_the_tokens(parts, reference, tmp_path):
    samples = tmp_path / "pairs.jsonl"
    samples.write_text(json.dumps({"text": "the plot | was bad", "pair": "a film"}) + "\n")
    Reference(task="text-classification", onnx=True).run(tmp_path / "c", checkpoint=parts.checkpoint, samples=samples)
    [request] = served_accuracy.requests_of(of_text(-1), tmp_path / "c", parts)
    assert request.arrays["TEXT"].tolist() == [[b"the plot | was bad", b"a film"]]
    with pytest.raises(StepError, match="no case of the validation can be asked"):
        served_accuracy.requests_of(of_text(1), tmp_path / "c", parts)


def test_a_model_of_tensors_is_asked_the_cases_that_fit(parts, reference):
    inputs = tuple(TensorMetadata(name, "INT64", (-1, -1)) for name in ("input_ids", "attention_mask"))
    model = ModelMetadata("m", inputs, (), max_batch_size=4)
    requests = served_accuracy.requests_of(model, reference, parts, outside=["line 4"])
    assert [each.case.name for each in requests] == ["line 1", "line 2", "line 3"]
    for each, case in zip(requests, cases.load(reference), strict=False):
        assert all(np.array_equal(each.arrays[name], array) for name, array in case.inputs.items())
        assert np.array_equal(each.case.outputs["logits"], case.outputs["logits"])


def request(**outputs):
    return ReferenceRequest({}, Case("one", "", "sample", {}, outputs))


SCORES = np.array([[0.7, 0.2, 0.1]], np.float32)
LABELS = np.array([[b"good", b"bad", b"so so"]], dtype=object)


def test_equal_answers_have_no_distance_only_the_best_of_a_ranking_is_a_choice_and_an_embedding_makes_none():
    expected = [request(labels=LABELS, scores=SCORES)]
    distance = served_accuracy.distance(expected, [{"labels": LABELS, "scores": SCORES}])
    assert (distance.cosine, distance.agreement, distance.max_abs) == (pytest.approx(1), 1, 0)
    for order, agreement in (([0, 2, 1], 1), ([1, 0, 2], 0)):
        answer = {"labels": LABELS[:, order], "scores": SCORES}
        assert served_accuracy.distance(expected, [answer]).agreement == agreement
    vector = {"sentence_embedding": np.array([[0.1, 0.6, 0.6]], np.float32)}
    assert served_accuracy.distance([request(**vector)], [vector]).agreement is None


def test_numbers_that_are_not_finite_and_answers_without_the_outputs_are_errors():
    expected = [request(scores=SCORES)]
    with pytest.raises(JudgementError, match="not finite"):
        served_accuracy.distance(expected, [{"scores": SCORES * np.nan}])
    with pytest.raises(StepError, match="has none of scores"):
        served_accuracy.distance(expected, [{"labels": LABELS}])


def test_the_bounds_of_the_recipe_judge_a_server():
    bounds, equal = Validate(precision="fp32", max_abs={"at_most": 1}), ServedDistance(10, 1.0, 1.0, 0.0)
    served_accuracy.judge(equal, bounds)
    for changes, says in (
        ({"cosine": 0.99}, "cosine 0.99 is below at_least 0.9999"),
        ({"agreement": 0.5}, "agreement 0.5 is below at_least 0.9"),
        ({"max_abs": 2.0}, "max_abs 2 is above at_most 1"),
    ):
        with pytest.raises(JudgementError, match=says):
            served_accuracy.judge(replace(equal, **changes), bounds)
