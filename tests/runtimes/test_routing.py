"""Routing: the shape that computes an input, and what padding adds and takes away again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.runtimes.routing import FREE, Routing

FIXED = [{"batch": 1, "sequence": 16}, {"batch": 1, "sequence": 128}, {"batch": 8, "sequence": 128}]


def routing(*, free=True, left=False, rows="batch", tokens="sequence"):
    """A text model with three fixed shapes."""
    return Routing(
        {
            "inputs": {"input_ids": ["batch", "sequence"], "attention_mask": ["batch", "sequence"]},
            "outputs": {"states": [rows, tokens, None]},
            "fixed": FIXED,
            "free": free,
            "rows": rows,
            "tokens": tokens,
            "left": left,
            "fill": {"input_ids": 7, "attention_mask": 0},
        }
    )


def chosen(of, batch, sequence):
    index = of.choose({"batch": batch, "sequence": sequence})
    return "free" if index == FREE else tuple(of.fixed[index].values())


@pytest.mark.parametrize(
    ("batch", "sequence", "shape"),
    [(1, 16, (1, 16)), (1, 14, (1, 16)), (1, 4, "free"), (1, 110, (1, 128)), (8, 128, (8, 128)), (2, 100, "free"),
     (1, 129, "free"), (9, 128, "free"), (7, 120, (8, 128))],
)  # fmt: skip
def test_an_input_goes_where_it_is_computed_fastest(batch, sequence, shape):
    assert chosen(routing(), batch, sequence) == shape


@pytest.mark.parametrize(("batch", "sequence", "shape"), [(1, 4, (1, 16)), (1, 17, (1, 128)), (2, 4, (8, 128))])
def test_without_free_shapes_every_input_is_padded(batch, sequence, shape):
    assert chosen(routing(free=False), batch, sequence) == shape


def test_an_input_that_no_shape_takes_is_refused():
    with pytest.raises(ValueError, match="no profile takes batch 1, sequence 129; the profiles are 1x16, 1x128, 8x128"):
        routing(free=False).choose({"batch": 1, "sequence": 129})


def test_without_padding_only_equal_sizes_go_to_a_fixed_shape():
    assert chosen(routing(rows=None, tokens=None), 1, 15) == "free"
    assert chosen(routing(rows=None, tokens=None), 1, 16) == (1, 16)
    assert chosen(routing(tokens=None), 5, 128) == "free"
    assert chosen(routing(tokens=None), 7, 128) == (8, 128)


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(1, 128), st.booleans())
def test_padding_adds_rows_and_tokens_that_cropping_takes_away(batch, sequence, left):
    one = routing(free=False, left=left)
    ids = np.arange(batch * sequence).reshape(batch, sequence) + 100
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    index = one.choose(one.sizes({name: array.shape for name, array in inputs.items()}))
    padded = one.padded(inputs, index)
    assert all(list(padded[name].shape) == shape for name, shape in one.shapes(index).items())
    assert padded["attention_mask"][:batch].sum() == ids.size
    assert (padded["input_ids"][:batch][padded["attention_mask"][:batch] == 0] == 7).all()
    rows = padded["attention_mask"].sum(axis=1)
    assert (rows == sequence).all(), "a further row is a copy of a row with tokens, not a row without any"
    outputs = one.cropped({"states": padded["input_ids"][:, :, None]}, {"batch": batch, "sequence": sequence})
    assert np.array_equal(outputs["states"][:, :, 0], ids)


@pytest.mark.parametrize(
    "shapes",
    [{"input_ids": (1, 4), "attention_mask": (1, 5)}, {"input_ids": (4,), "attention_mask": (4,)}],
)
def test_inputs_that_contradict_each_other_are_refused(shapes):
    with pytest.raises(ValueError, match=r"the model takes \['batch', 'sequence'\]"):
        routing().sizes(shapes)
