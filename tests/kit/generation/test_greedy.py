"""The greedy loop chooses what `generate()` of transformers chooses, whatever rules a checkpoint brings."""

import functools

import numpy as np
import pytest
import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

from engine.kit.generation.greedy import LENGTH, STOP, Greedy, Rules, generate, padded, positions

TOKENS, END = 12, 3
CONFIGS = {
    "nothing": {},
    "two ends": {"eos_token_id": [END, 7]},
    "repetition": {"repetition_penalty": 1.7},
    "three tokens once": {"no_repeat_ngram_size": 3},
    "one token once": {"no_repeat_ngram_size": 1},
    "bad words": {"bad_words_ids": [[5], [6, 2], [8, 9, 1], [END]]},
    "least length": {"min_length": 9},
    "least new": {"min_new_tokens": 4},
    "first": {"forced_bos_token_id": 4},
    "last": {"forced_eos_token_id": END},
    "suppressed": {"suppress_tokens": [1, 2, 3], "begin_suppress_tokens": [4, 5, 6, 7]},
    "suppressed behind a forced one": {"begin_suppress_tokens": [4, 5, 6, 7], "forced_bos_token_id": 4},
    "all": {
        "repetition_penalty": 0.6, "no_repeat_ngram_size": 2, "bad_words_ids": [[2, 6]], "min_new_tokens": 3,
        "forced_bos_token_id": 4, "forced_eos_token_id": [END, 7], "suppress_tokens": [10], "eos_token_id": [END, 7],
    },
}  # fmt: skip
PROMPTS = ([5], [1, 2, 8, 9], [6, 6, 6, 2, 6, 6])
MANY = ("eos_token_id", "forced_eos_token_id")


SEEDS = range(3)


@functools.cache
def model_of(seed):
    """A random GPT-2 of 12 tokens: so small that one of three models meets every rule within 15 steps."""
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=TOKENS, n_positions=64, n_embd=16, n_layer=1, n_head=2, initializer_range=0.8)
    return GPT2LMHeadModel(config).eval()


def rules(config):
    config = {"eos_token_id": END, **config}
    return Rules(**{k: [v] if k in MANY and isinstance(v, int) else v for k, v in config.items()})


def step_of(model, mask):
    """A step without a cache: it keeps all tokens, and the mask of the prompts, and runs everything again."""
    ids = np.zeros((len(mask), 0), dtype=np.int64)

    def step(tokens):
        nonlocal ids
        ids = np.hstack([ids, tokens])
        whole = np.hstack([mask, np.ones((len(mask), ids.shape[1] - mask.shape[1]), dtype=np.int64)])
        given = {"input_ids": ids, "attention_mask": whole, "position_ids": positions(whole, whole.shape[1])}
        with torch.no_grad():
            return model(**{name: torch.tensor(array) for name, array in given.items()}).logits[:, -1].numpy()

    return step


def run(model, prompts, rules, **options):
    greedy = Greedy(prompts, rules, **options)
    tokens, mask = padded(prompts, pad=0, left=True)
    return greedy, list(generate(step_of(model, mask), greedy, tokens))


@functools.cache
def alone(seed, name):
    """What `generate()` of transformers makes of each prompt by the rules of that name."""
    rules = {"eos_token_id": END, "pad_token_id": 0, **CONFIGS[name]}
    config = GenerationConfig(**rules, max_new_tokens=15)
    answers = []
    for prompt in PROMPTS:
        ids = torch.tensor([prompt])
        tokens = model_of(seed).generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        answers.append(tokens[0, len(prompt) :].tolist())
    return answers


@pytest.mark.parametrize("name", CONFIGS)
def test_every_row_of_a_batch_gets_the_tokens_that_it_would_get_alone(name):
    for seed in SEEDS:
        greedy, _ = run(model_of(seed), PROMPTS, rules(CONFIGS[name]), max_new_tokens=15)
        assert greedy.made == alone(seed, name)


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "nothing"])
def test_each_rule_changes_what_is_generated(name):
    assert any(alone(seed, name) != alone(seed, "nothing") for seed in SEEDS)


def test_what_is_yielded_is_what_is_made_until_a_row_is_finished():
    greedy, steps = run(model_of(0), PROMPTS, rules({}), max_new_tokens=[1, 2, 6], ignore_eos=True)
    assert [len(tokens) for tokens in greedy.made] == [1, 2, 6]
    assert len(steps) == 6
    for row, tokens in enumerate(greedy.made):
        assert [int(step[row]) for step in steps][: len(tokens)] == tokens
    assert greedy.reasons == [LENGTH] * 3


def fixed(*columns):
    """A step that answers the same for any tokens: each column is what a row says next, one after the other."""
    logits = iter(np.stack([np.eye(TOKENS, dtype=np.float32)[list(column)] for column in columns]))
    return lambda tokens: next(logits)


def test_a_row_ends_with_its_end_token_and_the_others_go_on():
    greedy = Greedy([[1], [1]], Rules(eos_token_id=[END]), max_new_tokens=3)
    list(generate(fixed([5, 5], [END, 6], [7, END]), greedy, np.array([[1], [1]])))
    assert greedy.made == [[5, END], [5, 6, END]]
    assert greedy.reasons == [STOP, STOP]


def test_a_row_goes_on_after_its_end_token_where_that_is_asked_for():
    greedy = Greedy([[1]], Rules(eos_token_id=[END]), max_new_tokens=3, ignore_eos=True)
    list(generate(fixed([END], [END], [4]), greedy, np.array([[1]])))
    assert greedy.made == [[END, END, 4]]
    assert greedy.reasons == [LENGTH]


def test_a_caller_can_end_a_row():
    greedy = Greedy([[1], [1]], Rules(), max_new_tokens=9)
    for number, _ in enumerate(generate(fixed(*[[4, 5]] * 9), greedy, np.array([[1], [1]]))):
        if number == 1:
            greedy.stop(0)
    assert [len(tokens) for tokens in greedy.made] == [2, 9]
    assert greedy.reasons == [STOP, LENGTH]


@pytest.mark.parametrize(("prompts", "most"), [([[]], 4), ([[1]], 0), ([[1], [2]], [3]), ([[1]], [-1])])
def test_what_cannot_be_generated_is_refused(prompts, most):
    with pytest.raises(ValueError, match="at least"):
        Greedy(prompts, Rules(), max_new_tokens=most)
