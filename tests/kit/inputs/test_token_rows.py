"""Rows of tokens: padding on each side, holes, and what fixed axes ask for."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kit.inputs import token_rows
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx.onnx_files import Input


def row(*ids):
    numbers = np.array([ids])
    return {"input_ids": numbers, "attention_mask": np.ones_like(numbers), "token_type_ids": np.zeros_like(numbers)}


@pytest.mark.parametrize(
    ("side", "ids", "mask"),
    [
        ("right", [[5, 6, 7], [8, 9, 9]], [[1, 1, 1], [1, 0, 0]]),
        ("left", [[5, 6, 7], [9, 9, 8]], [[1, 1, 1], [0, 0, 1]]),
    ],
)
def test_a_batch_is_filled_up_with_the_padding_id_on_the_side_that_is_asked(side, ids, mask):
    inputs = token_rows.batch([row(5, 6, 7), row(8)], pad=9, side=side)
    assert inputs["input_ids"].tolist() == ids
    assert inputs["attention_mask"].tolist() == mask


def test_a_hole_hides_the_middle_of_each_row_and_leaves_its_ends():
    inputs = token_rows.punch_hole(token_rows.batch([row(*range(6)), row(1, 2, 3), row(4, 5)], pad=0))
    assert inputs["attention_mask"].tolist() == [[1, 1, 0, 0, 1, 1], [1, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]]


def test_masks_of_every_kind_hide_something_even_where_all_rows_have_one_length():
    kinds = {
        kind: inputs["attention_mask"]
        for kind, _, inputs in token_rows.masked([row(*range(9))] * 4, pad=0, limits=RowLimits())
    }
    assert list(kinds) == ["right-padded", "left-padded", "holed"]
    assert kinds["right-padded"][0].tolist() == [1] * 4 + [0] * 5
    assert kinds["left-padded"][0].tolist() == [0] * 5 + [1] * 4
    assert kinds["holed"][1].tolist() == [1] * 3 + [0] * 3 + [1] * 3


def test_fixed_axes_are_filled_by_repeating_the_row_and_padding_it():
    limits = RowLimits.of({"input_ids": Input("input_ids", "int64", (2, 4))})
    inputs = token_rows.alone(row(1, 2), pad=7, limits=limits)
    assert inputs["input_ids"].tolist() == [[1, 2, 7, 7], [1, 2, 7, 7]]
    for _, _, inputs in token_rows.masked([row(1, 2)], pad=7, limits=limits):
        assert inputs["input_ids"].shape == (2, 4)


def test_a_fixed_batch_of_one_gets_its_masks_one_row_at_a_time():
    limits = RowLimits(batch=(1, 1))
    shapes = [
        inputs["input_ids"].shape for _, _, inputs in token_rows.masked([row(1, 2, 3, 4)] * 5, pad=0, limits=limits)
    ]
    assert shapes == [(1, 4)] * 6


def test_positions_are_counted_where_a_model_asks_for_them():
    specs = {name: Input(name, "int32", ("batch", "sequence")) for name in ("input_ids", "position_ids")}
    inputs = token_rows.fit(row(4, 5, 6), specs)
    assert inputs["position_ids"].tolist() == [[0, 1, 2]]
    assert {tensor.dtype.name for tensor in inputs.values()} == {"int32"}
    assert list(inputs) == ["input_ids", "position_ids"]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([[1, 1, 1]], True),
        ([[1, 0, 0], [1, 1, 0]], True),
        ([[0, 1, 1]], False),
        ([[1, 0, 1]], False),
        ([[1, 1, 1], [0, 0, 0]], False),
    ],
)
def test_a_mask_that_is_a_length_shows_the_first_tokens_alone(mask, expected):
    inputs = {"input_ids": np.zeros((len(mask), 3), np.int64), "attention_mask": np.array(mask)}
    assert token_rows.are_right_padded(inputs) == expected
    assert token_rows.are_right_padded({"input_ids": inputs["input_ids"]})
