"""Sampling as it is served: the probabilities of transformers' own warpers, and draws by these probabilities."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.generation import logits_process as original

from engine.kit.triton.served import sampling
from engine.kit.triton.served.sampling import Sampling


def warped(scores, *, temperature, top_k, top_p):
    """The probabilities that transformers leaves, in the order of `generate()`."""
    warpers = [original.TemperatureLogitsWarper(temperature)]
    warpers += [original.TopKLogitsWarper(top_k)] if top_k else []
    warpers += [original.TopPLogitsWarper(top_p)] if top_p else []
    changed = torch.tensor(scores)[None]
    for warper in warpers:
        changed = warper(None, changed)
    return changed[0].softmax(0).numpy()


@given(
    seed=st.integers(0, 999),
    temperature=st.sampled_from([0.3, 0.7, 1.0, 1.9]),
    top_k=st.sampled_from([None, 1, 3, 20, 99]),
    top_p=st.sampled_from([None, 0.05, 0.5, 0.9, 0.999]),
)
def test_the_probabilities_are_those_of_transformers(seed, temperature, top_k, top_p):
    scores = 3 * np.random.default_rng(seed).standard_normal(40)
    scores[seed % 40] = -np.inf  # a rule forbade it
    own = Sampling(temperature, top_k, top_p).probabilities(scores)
    assert np.allclose(own, warped(scores, temperature=temperature, top_k=top_k, top_p=top_p), atol=1e-9)


def test_draws_follow_the_probabilities():
    scores = np.log(np.array([0.5, 0.3, 0.2, 1e-30]))
    sampler = sampling.read({"seed": 1}).sampler(0)
    counts = np.bincount([sampler(scores) for _ in range(10_000)], minlength=4)
    expected = np.array([5000, 3000, 2000])
    assert counts[3] == 0
    assert ((counts[:3] - expected) ** 2 / expected).sum() < 30


def test_a_seed_repeats_its_draws_and_rows_differ():
    scores = np.zeros(1000)

    def draws(row, **parameters):
        sampler = sampling.read(parameters).sampler(row)
        return [sampler(scores) for _ in range(20)]

    assert draws(0, seed=5) == draws(0, random_seed=5)
    assert draws(0, seed=5) != draws(1, seed=5)
    assert draws(0, temperature=1.0) != draws(0, temperature=1.0)


@pytest.mark.parametrize(
    ("parameters", "draws"),
    [
        ({}, False),
        ({"repetition_penalty": 1.2}, False),
        ({"temperature": 0.7}, True),
        ({"temperature": "0.7"}, True),
        ({"temperature": 0}, False),
        ({"top_k": 5}, True),
        ({"do_sample": True}, True),
        ({"do_sample": False, "temperature": 0.7}, False),
    ],
)
def test_parameters_turn_drawing_on(parameters, draws):
    assert sampling.read(parameters).draws is draws


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"temperature": -1}, "temperature: -1 is no number of at least 0"),
        ({"temperature": "hot"}, "temperature: 'hot' is no number"),
        ({"temperature": True}, "temperature: True is no number"),
        ({"temperature": float("nan")}, "is no number"),
        ({"top_k": 0}, "top_k: 0 is no number of at least 1"),
        ({"top_k": 2.5}, "top_k: 2.5 is no whole number"),
        ({"top_p": 1.5}, "at most 1"),
        ({"top_p": 0}, "top_p: 0 allows no token"),
        ({"seed": -3}, "seed: -3"),
        ({"seed": 1, "random_seed": 2}, "one seed"),
        ({"repetition_penalty": 0}, "above 0"),
        ({"do_sample": "maybe"}, "neither true nor false"),
    ],
)
def test_a_value_that_cannot_be_is_refused(parameters, says):
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        sampling.read(parameters)
