"""Prompts cut to the room that there is, and generated text in pieces: whole characters, stop strings held back."""

import generators
import pytest
from tokenizers import Tokenizer, models

from engine.kit.triton.served.pieces import Pieces
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
    shorter = Prompts(tokenizers["llama"], {**ALL, "positions": 20, "longest": 5}).tokens(LONG, new=8)
    assert shorter == [ids[0], *ids[-4:]]


def test_a_text_that_an_encoder_reads_keeps_its_beginning_and_its_special_tokens(tokenizers):
    ids = tokenizers["bart"].encode(LONG).ids
    tokens = Prompts(tokenizers["bart"], {**ALL, "positions": 20, "longest": 20, "encoder": True}).tokens(LONG, new=19)
    assert tokens == [*ids[:19], ids[-1]]


def test_a_short_text_is_not_cut(tokenizers):
    tokens = Prompts(tokenizers["opt"], {**ALL, "positions": 40}).tokens("ok", new=8)
    assert tokens == tokenizers["opt"].encode("ok").ids


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


def grown(pieces, ids):
    return [pieces.next(ids[: end + 1], finished=end + 1 == len(ids)) for end in range(len(ids))]


def decoder(tokenizer):
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("family", ["gpt2", "opt", "llama", "bart"])
@pytest.mark.parametrize("text", ["日本語 and 👩‍🚀😀!", "The dog, ñ.", "😀"])
def test_no_piece_holds_half_a_character(tokenizers, family, text):
    ids = tokenizers[family].encode(text).ids
    shown = grown(Pieces(decoder(tokenizers[family])), ids)
    assert "".join(shown) == text
    assert "\ufffd" not in "".join(shown)
    assert len([piece for piece in shown if piece]) > 1 or len(text) == 1


def test_bytes_that_never_become_a_character_are_shown_at_the_end(tokenizers):
    ids = tokenizers["gpt2"].encode("ok 😀").ids[:-1]
    shown = grown(Pieces(decoder(tokenizers["gpt2"])), ids)
    assert shown[-1].endswith("\ufffd")
    assert "".join(shown) == tokenizers["gpt2"].decode(ids)


def bytewise(ids):
    """As a tokenizer that falls back to bytes does it: all bytes become characters, or none."""
    try:
        return bytes(ids).decode()
    except UnicodeDecodeError:
        return "\ufffd" * len(ids)


def test_a_character_that_was_sent_is_not_sent_again_when_broken_bytes_take_it_back():
    ids = [*"日本".encode()][:-1]
    assert bytewise(ids) == "\ufffd" * 5
    shown = grown(Pieces(bytewise), ids)
    assert shown == ["", "", "日", "", "\ufffd\ufffd"]
    assert grown(Pieces(bytewise), [*"日本".encode()]) == ["", "", "日", "", "", "本"]


def test_an_answer_in_one_piece_is_what_the_tokenizer_makes_of_it():
    ids = [*"日本".encode()][:-1]
    assert grown(Pieces(bytewise, whole=True), ids) == ["", "", "", "", bytewise(ids)]
    pieces = Pieces(letters, stops=["END"], whole=True)
    assert grown(pieces, [*map(ord, "aEND")]) == ["", "", "", "a"]
    assert pieces.stopped


def test_a_space_that_begins_an_answer_is_kept_behind_its_prompt(tokenizers):
    whole = tokenizers["llama"].encode("the dog sat", add_special_tokens=False).ids
    prompt = tokenizers["llama"].encode("the dog", add_special_tokens=False).ids
    assert whole[: len(prompt)] == prompt
    context = Prompts(tokenizers["llama"], ALL).context(prompt)
    assert "".join(grown(Pieces(decoder(tokenizers["llama"]), context=context), whole[len(prompt) :])) == " sat"


def letters(ids):
    return "".join(map(chr, ids))


def test_letters_that_may_become_a_stop_string_are_held_back_until_they_do_not():
    pieces = Pieces(letters, stops=["END", ""])
    assert grown(pieces, [*map(ord, "aENxENDb")][:4]) == ["a", "", "", "ENx"]
    pieces = Pieces(letters, stops=["END"])
    shown = [pieces.next([*map(ord, "aENDb")][:end], finished=False) for end in range(1, 5)]
    assert shown == ["a", "", "", ""]
    assert pieces.stopped


def test_of_several_stop_strings_the_first_in_the_text_ends_it():
    pieces = Pieces(letters, stops=["c", "ab"])
    assert pieces.next([*map(ord, "xabc")], finished=False) == "x"
    assert pieces.stopped


def test_a_stop_string_that_is_only_begun_is_shown_when_the_answer_is_finished():
    pieces = Pieces(letters, stops=["END"])
    assert grown(pieces, [*map(ord, "aEN")]) == ["a", "", "EN"]
    assert not pieces.stopped
