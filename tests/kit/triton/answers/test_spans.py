"""Answers to questions with windows, words and "no answer", by the rules of transformers' pipeline (until 5.2)."""

import models
import numpy as np
import pytest
import span_rules
import transformers

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import text as texts
from engine.kit.triton.answers import spans
from engine.kit.triton.config import Signature
from engine.kit.triton.served.answer import Work as Answer
from engine.kit.triton.served.tokenizer import Work as Tokenizer
from engine.kit.triton.serving import Serving

LONGEST, STRIDE, LENGTH = 32, 8, 6
ROWS = (
    ("where is the river?", "the unaffected river ships in the city. it is warm on the train. " * 5),
    ("who?", "a film"),
    ("when was it?", "slow train and fast ships"),
    ("what?", ""),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return models.checkpoint(tmp_path_factory.mktemp("spans") / "model", "bert", task="question-answering")


def parts(checkpoint, folder, **options):
    """The served tokenizer and postprocessing, with the settings that a package gets."""
    tokens = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}
    logits = {name: Input(name, "float32", ("batch", "sequence")) for name in ("start_logits", "end_logits")}
    largest = {"batch": 8, "sequence": LONGEST}
    serving = Serving(model_name="m", ensemble="m_text", largest=largest, answers=options)
    text = texts.load(serving, Signature(tokens, logits), checkpoint, "question-answering")
    answer = spans.make(Signature(tokens, logits), checkpoint, text)
    (folder / "tokenizer.json").write_text(text.file)
    settings = {
        "outputs": dict.fromkeys((*tokens, "offsets"), "int64"), "offsets_of": 1, "max_text_bytes": 10_000,
        "whole_words": options.get("align_to_words", False), "windows": "doc_stride" in options,
    }  # fmt: skip
    return Tokenizer(folder, settings), Answer(folder, answer.settings), answer


@pytest.mark.parametrize("stride", [None, STRIDE])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("impossible", [False, True])
def test_answers_are_those_of_the_pipeline(checkpoint, tmp_path, stride, words, impossible):
    options = {"max_answer_len": LENGTH}
    options |= {"doc_stride": stride} if stride else {}
    options |= {"align_to_words": True} if words else {}
    options |= {"handle_impossible_answer": True} if impossible else {}
    tokenizer, answer, described = parts(checkpoint, tmp_path, **options)
    assert ("start_logits" in described.outputs) is (stride is None)
    original = transformers.AutoTokenizer.from_pretrained(checkpoint)
    rng, nothing = np.random.default_rng(0), 0
    for row in ROWS:
        text = np.array([[each.encode() for each in row]], dtype=object)
        tokens = tokenizer({"TEXT": text})
        assert (len(tokens["input_ids"]) > 1) is (stride is not None and row is ROWS[0])
        for _ in range(10):
            logits = rng.standard_normal((2, *tokens["input_ids"].shape)).astype(np.float32) * 3
            answers = answer({"TEXT": text, "start_logits": logits[0], "end_logits": logits[1], **tokens})
            rules = {"impossible": impossible, "words": words, "stride": stride, "longest": LONGEST, "length": LENGTH}
            best = span_rules.expected(original, row, logits, **rules)
            assert [answers[name][0, 0] for name in ("answer", "start", "end")] == [best[0], *best[2:]]
            assert answers["score"][0, 0] == pytest.approx(best[1], abs=1e-5)
            nothing += best[2] < 0 and bool(row[1])
    assert bool(nothing) is impossible


def test_rows_of_one_request_keep_their_windows_apart(checkpoint, tmp_path):
    tokenizer, answer, _ = parts(checkpoint, tmp_path, doc_stride=STRIDE)
    text = np.array([[each.encode() for each in row] for row in ROWS[:3]], dtype=object)
    tokens = tokenizer({"TEXT": text})
    assert tokens["window_rows"][:, 0].tolist() == [*[0] * (len(tokens["input_ids"]) - 2), 1, 2]
    logits = np.zeros((2, *tokens["input_ids"].shape), np.float32)
    last_of_first = len(tokens["input_ids"]) - 3
    inside = np.flatnonzero(tokens["offsets"][last_of_first, :, 0] >= 0)
    logits[:, last_of_first, inside[-1]] = 9
    answers = answer({"TEXT": text, "start_logits": logits[0], "end_logits": logits[1], **tokens})
    assert answers["answer"].shape == (3, 1)
    assert answers["end"][0, 0] == len(ROWS[0][1].rstrip())


def test_a_stride_that_leaves_no_room_is_refused(checkpoint, tmp_path):
    with pytest.raises(StepError, match="leaves no room"):
        parts(checkpoint, tmp_path, doc_stride=LONGEST)
