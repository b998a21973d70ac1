"""Generated text in pieces: whole characters, and stop strings held back."""

import generators
import pytest
from tokenizers import Tokenizer

from engine.kit.triton.served.pieces import Pieces
from engine.kit.triton.served.prompts import Prompts

ALL = {"longest": None, "positions": None, "encoder": False, "empty": None, "max_text_bytes": 10_000}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizers")
    for family in generators.FAMILIES:
        generators.save_tokenizer(folder / family, family)
    return {family: Tokenizer.from_file(str(folder / family / "tokenizer.json")) for family in generators.FAMILIES}


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
