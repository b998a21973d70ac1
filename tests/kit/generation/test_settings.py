"""What a checkpoint says about how its text is generated: honoured, said aloud, or refused by name."""

import json

import pytest

from engine.errors import StepError
from engine.kit.generation import settings
from engine.kit.generation.greedy import Rules

GPT2 = {"model_type": "gpt2", "n_positions": 64, "eos_token_id": 5, "bos_token_id": 5}
BART = {
    "model_type": "bart", "is_encoder_decoder": True, "max_position_embeddings": 64, "pad_token_id": 1,
    "decoder_start_token_id": 2, "eos_token_id": 2,
}  # fmt: skip


def read(folder, config, generation=None, **options):
    (folder / "config.json").write_text(json.dumps(config))
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    return settings.read(folder, **options)


def test_every_rule_is_read_under_its_own_name(tmp_path):
    config = {
        "eos_token_id": [5, 6], "repetition_penalty": 2, "no_repeat_ngram_size": 3, "bad_words_ids": [[1, 2]],
        "min_length": 4, "forced_bos_token_id": 7, "forced_eos_token_id": 6, "suppress_tokens": [8],
        "begin_suppress_tokens": [9],
    }  # fmt: skip
    assert read(tmp_path, GPT2, config).rules == Rules(
        eos_token_id=(5, 6), repetition_penalty=2.0, no_repeat_ngram_size=3, bad_words_ids=((1, 2),), min_length=4,
        forced_bos_token_id=7, forced_eos_token_id=(6,), suppress_tokens=(8,), begin_suppress_tokens=(9,),
    )  # fmt: skip


def test_what_is_shipped_as_json_is_read_as_the_same_rules(tmp_path):
    shipped = read(tmp_path, GPT2, {"eos_token_id": [5], "bad_words_ids": [[1, 2]], "min_new_tokens": 2})
    again = Rules(**json.loads(json.dumps(shipped.as_json()))["rules"])
    assert list(again.eos_token_id) == [5]
    assert [list(word) for word in again.bad_words_ids] == [[1, 2]]
    assert again.min_new_tokens == 2


def test_a_generation_config_stands_alone(tmp_path):
    assert read(tmp_path, GPT2).rules.eos_token_id == (5,)
    assert read(tmp_path, GPT2, {}).rules.eos_token_id == ()


def test_of_a_least_length_and_least_new_tokens_the_new_ones_count(tmp_path):
    rules = read(tmp_path, GPT2, {"min_length": 30, "min_new_tokens": 2}).rules
    assert (rules.min_length, rules.min_new_tokens) == (0, 2)


@pytest.mark.parametrize(
    ("field", "value"),
    [("sequence_bias", [[[1], 2.0]]), ("guidance_scale", 1.5), ("encoder_no_repeat_ngram_size", 2),
     ("exponential_decay_length_penalty", [3, 1.1]), ("remove_invalid_values", True), ("max_time", 3.0)],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path, field, value):
    with pytest.raises(StepError) as caught:
        read(tmp_path, GPT2, {field: value})
    assert f"generation_config.json: {field}: {value}" in str(caught.value)


@pytest.mark.parametrize("value", [None, False, 0, []])
def test_what_is_switched_off_is_not_refused(tmp_path, value):
    read(tmp_path, GPT2, dict.fromkeys(("sequence_bias", "guidance_scale", "max_time"), value) | {"guidance_scale": 1})


def test_what_is_not_greedy_is_said_and_generated_greedily(tmp_path):
    notes = read(tmp_path, GPT2, {"num_beams": 4, "do_sample": True, "num_return_sequences": 1}).notes
    assert notes == (
        "generation_config.json asks for num_beams: 4; text is generated greedily all the same",
        "generation_config.json asks for do_sample: True; text is generated greedily all the same",
    )


@pytest.mark.parametrize(
    ("config", "generation", "options", "expected"),
    [
        (GPT2, {}, {"max_new_tokens": 63}, 63),
        (GPT2, {"max_new_tokens": 9}, {"max_new_tokens": 12}, 12),
        (GPT2, {"max_new_tokens": 9}, {}, 9),
        (GPT2, {}, {}, 32),  # half of what there is room for
        ({"model_type": "t5", "is_encoder_decoder": True}, {"decoder_start_token_id": 0}, {}, 128),
        (BART, {**BART, "max_length": 21}, {}, 20),  # the decoder's first token is no new one
        (GPT2, {}, {"longest": 20}, 10),
    ],
)
def test_the_recipe_decides_how_many_tokens_are_new_then_the_model_then_its_room(
    tmp_path, config, generation, options, expected
):
    assert read(tmp_path, config, generation, **options).max_new_tokens == expected


def test_more_new_tokens_than_there_is_room_for_are_refused(tmp_path):
    with pytest.raises(StepError, match="no room for 64 new tokens"):
        read(tmp_path, GPT2, max_new_tokens=64)
    with pytest.raises(StepError, match="no room for 32 new tokens"):
        read(tmp_path, GPT2, max_new_tokens=32, longest=32)


def test_a_decoder_begins_as_the_model_says_or_is_refused(tmp_path):
    assert read(tmp_path, BART).decoder_start_token_id == 2
    assert read(tmp_path, BART, {"bos_token_id": 7}).decoder_start_token_id == 7
    assert read(tmp_path, GPT2, {"decoder_start_token_id": 2}).decoder_start_token_id is None
    with pytest.raises(StepError, match="which token its decoder begins with"):
        read(tmp_path, BART, {})


@pytest.mark.parametrize(
    ("field", "value"),
    [("eos_token_id", "</s>"), ("min_length", -1), ("no_repeat_ngram_size", 2.5), ("repetition_penalty", 0)],
)
def test_values_that_cannot_be_are_refused_by_name(tmp_path, field, value):
    with pytest.raises(StepError, match=f"an invalid {field}"):
        read(tmp_path, GPT2, {field: value})
