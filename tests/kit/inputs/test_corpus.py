"""A text for the perplexity: refused where it is none, and read in windows that score each token once."""

import generators
import pytest

from engine.errors import StepError
from engine.kit.inputs import corpus

PROSE = "The cat sat on the mat and looked at the dog, who slept. " * 40


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "corpus.txt is empty"),
        (b" \n\t\n" * 99, "corpus.txt is empty"),
        (b"too short", "corpus.txt is too short for a perplexity"),
        (b"\xff\xfe" * 999, "corpus.txt is no UTF-8 text"),
        (b"text \0 and zeros" * 99, "corpus.txt is no text"),
    ],
)
def test_what_is_no_text_is_refused(content, what, tmp_path):
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(StepError) as caught:
        corpus.read(tmp_path / "corpus.txt")
    assert caught.value.what == what


def test_a_text_that_is_cut_inside_a_letter_is_text(tmp_path):
    (tmp_path / "corpus.txt").write_text("é" * 20_000, "utf-8")
    assert corpus.read(tmp_path / "corpus.txt", limit=129).count("é") == 129 * 64 // 2
    (tmp_path / "corpus.txt").write_text("x" + "é" * 20_000, "utf-8")
    assert corpus.read(tmp_path / "corpus.txt", limit=129).count("é") == 129 * 64 // 2 - 1


def test_no_more_tokens_are_read_than_the_limit_and_few_are_refused(tmp_path):
    generators.save_tokenizer(tmp_path, "gpt2")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "corpus.txt").write_text(PROSE)
    whole = corpus.tokens(tmp_path / "corpus.txt", tmp_path)
    assert len(whole) > 200
    assert corpus.tokens(tmp_path / "corpus.txt", tmp_path, limit=150) == whole[:150]
    (tmp_path / "corpus.txt").write_text(PROSE[:200])
    with pytest.raises(StepError, match="too short for a perplexity") as caught:
        corpus.tokens(tmp_path / "corpus.txt", tmp_path)
    assert "tokens; at least 128 tokens are needed" in caught.value.facts[0]


def test_a_model_without_a_tokenizer_has_no_perplexity(tmp_path):
    (tmp_path / "corpus.txt").write_text(PROSE)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with pytest.raises(StepError, match="the model has no tokenizer"):
        corpus.tokens(tmp_path / "corpus.txt", tmp_path / "model")


@pytest.mark.parametrize("count", [128, 129, 255, 256, 257, 384, 385, 1000])
@pytest.mark.parametrize("longest", [None, 48, 33, 1024])
def test_windows_score_each_token_but_the_first_once_with_half_a_window_before_it(count, longest):
    length = corpus.window_length(longest)
    scored = []
    for window in corpus.windows(count, longest):
        assert window.end - window.start <= length
        assert window.start == 0 or window.seen >= length // 2
        scored += range(window.start + window.seen, window.end)
    assert scored == list(range(1, count))
