"""Prompts that are cut to the room that there is, their special tokens kept."""

import generators
import pytest
from tokenizers import Tokenizer, models

from engine.kit.triton.served.prompts import Prompts

ALL = {"longest": None, "positions": None, "encoder": False, "empty": None, "max_text_bytes": 10_000}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    for family in generators.FAMILIES:
        generators.save_tokenizer(folder / family, family)
    return {family: Tokenizer.from_file(str(folder / family / "tokenizer.json")) for family in generators.FAMILIES}


LONG = "The dog looked at the cat and slept. " * 4


def test_a_text_that_is_continued_keeps_its_end_and_its_special_tokens(tokenizers):
    ids = tokenizers["llama"].encode(LONG).ids
    tokens = Prompts(tokenizers["llama"], {**ALL, "positions": 20}).tokens(LONG, new=8)
    assert tokens == [ids[0], *ids[-11:]]
    assert Prompts(tokenizers["llama"], {**ALL, "positions": 20, "longest": 5}).tokens(LONG, new=8) == [
        ids[0],
        *ids[-4:],
    ]


def test_a_text_that_an_encoder_reads_keeps_its_beginning_and_its_special_tokens(tokenizers):
    ids = tokenizers["bart"].encode(LONG).ids
    tokens = Prompts(tokenizers["bart"], {**ALL, "positions": 20, "longest": 20, "encoder": True}).tokens(LONG, new=19)
    assert tokens == [*ids[:19], ids[-1]]


def test_a_short_text_is_not_cut(tokenizers):
    assert (
        Prompts(tokenizers["opt"], {**ALL, "positions": 40}).tokens("ok", new=8) == tokenizers["opt"].encode("ok").ids
    )


def test_a_text_that_has_no_room_is_an_error(tokenizers):
    with pytest.raises(ValueError, match="leave no room for a text"):
        Prompts(tokenizers["llama"], {**ALL, "positions": 9}).tokens("The dog", new=8)


def test_an_empty_text_begins_as_the_model_does_or_is_an_error(tokenizers):
    assert Prompts(tokenizers["gpt2"], {**ALL, "empty": 0}).tokens("", new=8) == [0]
    assert Prompts(tokenizers["opt"], ALL).tokens("", new=8) == tokenizers["opt"].encode("").ids
    with pytest.raises(ValueError, match="an empty text has no tokens"):
        Prompts(tokenizers["gpt2"], ALL).tokens("", new=8)


def test_a_text_that_the_tokenizer_cannot_read_is_an_error():
    words = Tokenizer(models.WordLevel({"a": 0}, unk_token="[UNK]"))
    with pytest.raises(ValueError, match="TEXT: the tokenizer cannot read it"):
        Prompts(words, ALL).tokens("b", new=8)


def test_a_text_of_too_many_bytes_is_refused_before_the_tokenizer_reads_it():
    limited = {**ALL, "max_text_bytes": 6}
    with pytest.raises(ValueError, match="TEXT: a text of 7 bytes; this model takes at most 6 bytes"):
        Prompts(_Untouched(), limited).tokens("äöü!", new=8)


class _Untouched:
    """A tokenizer that encodes nothing."""

    def num_special_tokens_to_add(self, _pair):
        return 0

    def token_to_id(self, _token):
        return None

    def encode(self, *_arguments, **_options):
        raise AssertionError("the text was encoded")
