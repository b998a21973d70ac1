"""Exact texts: as many tokens as asked, by any tokenizer, and a clear word where that cannot be."""

import models
import pytest

from engine.errors import StepError
from engine.kit.inputs import exact_texts
from engine.kit.inputs import tokenizer as tokenizers


@pytest.fixture(params=["bert", "roberta"])
def tokenizer(request, tmp_path):
    (tmp_path / "config.json").write_text(f'{{"model_type": "{request.param}"}}')
    models.save_tokenizer(tmp_path, request.param)
    return tokenizers.load(tmp_path, longest=64)


def lengths(tokenizer, rows):
    return {tokenizer.row(*row)["input_ids"].shape[1] for row in rows}


@pytest.mark.parametrize("tokens", [3, 4, 7, 16, 63, 64])
def test_each_row_has_just_that_many_tokens_and_is_cut_nowhere(tokenizer, tokens):
    rows = exact_texts.draw(tokenizer, rows=3, tokens=tokens)
    assert tokenizer.longest is None
    assert lengths(tokenizer, rows) == {tokens}


def test_the_rows_of_a_batch_differ(tokenizer):
    rows = exact_texts.draw(tokenizer, rows=4, tokens=16)
    assert len({text for [text] in rows}) == 4


def test_a_pair_is_counted_as_one_row(tokenizer):
    rows = exact_texts.draw(tokenizer, rows=2, tokens=32, paired=True)
    assert {len(row) for row in rows} == {2}
    assert all(all(row) for row in rows)
    assert lengths(tokenizer, rows) == {32}


def test_more_tokens_than_texts_may_have_and_fewer_than_any_has_are_refused(tokenizer):
    with pytest.raises(StepError, match="no text of exactly 65 tokens") as caught:
        exact_texts.draw(tokenizer, rows=1, tokens=65)
    assert "cut at 64 tokens" in str(caught.value)
    with pytest.raises(StepError, match="no text of exactly 1 tokens"):
        exact_texts.draw(tokenizer, rows=1, tokens=1)
