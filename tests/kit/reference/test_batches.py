import numpy as np
import pytest

from engine.kit.inputs.cases import JOINED, Case
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import batches

IDS = Input("input_ids", "int64", ("batch", "sequence"))
TEXT = {name: Input(name, "int64", IDS.shape) for name in ("input_ids", "attention_mask", "token_type_ids")}


def tensors(number, **inputs):
    return Case(f"row {number}", "", "tensors", inputs, {})


def rows(count, width=4, **others):
    return [tensors(number, x=np.full((1, width), number), **others) for number in range(count)]


def text(*ids):
    row = np.array([[1, *ids, 2, 0]])
    inputs = {"input_ids": row, "attention_mask": (row > 0).astype(int), "token_type_ids": row * 0}
    return Case("text", "", "sample", inputs, {})


def sizes(cases, specs, name="x"):
    return [case.inputs[name].shape for case in batches.of_tensors(cases, specs)]


X = {"x": Input("x", "int64", ("n", 4))}


def test_a_single_sample_stands_in_a_batch_twice():
    assert sizes(rows(1), X) == [(2, 4)]
    assert sizes([*rows(1), *rows(1, width=5)], X) == [(2, 4)]
    one = list(batches.of_texts([text(7)], TEXT, pad=0, limits=RowLimits()))
    assert [case.inputs["input_ids"].shape for case in one if case.kind in JOINED] == [(2, 4), (2, 4)]


def test_a_fixed_batch_of_one_has_no_batches():
    cases = batches.of_texts([text(7)], TEXT, pad=0, limits=RowLimits(batch=(1, 1)))
    assert not [case for case in cases if case.kind in JOINED]


def test_first_axes_of_different_names_are_batches_and_other_inputs_stay_as_they_are():
    specs = {**X, "y": Input("y", "float32", ("m", 2)), "rate": Input("rate", "int64", ())}
    cases = [*rows(3, y=np.zeros((1, 2)), rate=np.array(8)), *rows(2, y=np.zeros((1, 2)), rate=np.array(16))]
    joined = list(batches.of_tensors(cases, specs))
    assert [case.inputs["x"].shape for case in joined] == [(3, 4), (2, 4)]
    assert [case.inputs["y"].shape for case in joined] == [(3, 2), (2, 2)]
    assert [int(case.inputs["rate"]) for case in joined] == [8, 16]


def test_a_model_without_a_dynamic_first_axis_has_no_batches():
    specs = {"x": Input("x", "int64", (1, 4)), "rate": Input("rate", "int64", ())}
    cases = rows(3, rate=np.array(8))
    assert not list(batches.of_tensors(cases, specs))
    assert not list(batches.alone(cases, specs, ()))


def test_the_first_row_of_a_random_batch_stands_alone_beside_inputs_without_a_batch():
    specs = {**X, "rate": Input("rate", "int64", ())}
    (case,) = batches.alone([tensors(0, x=np.arange(8).reshape(2, 4), rate=np.array(8))], specs, ())
    assert case.inputs["x"].tolist() == [[0, 1, 2, 3]]
    assert case.inputs["rate"] == 8


@pytest.mark.parametrize(("limit", "length"), [(10, 10), (None, 128), (4096, 512)])
def test_a_long_row_joins_the_tokens_of_all_texts_and_has_every_token_type(limit, length):
    limits = RowLimits(sequence=(1, limit))
    (case,) = batches.long_row([text(7, 8), text(9)], TEXT, types=2, limits=limits)
    ids, types = case.inputs["input_ids"][0], case.inputs["token_type_ids"][0]
    assert len(ids) == length
    assert ids[:8].tolist() == [1, 7, 8, 2, 1, 9, 2, 1]
    assert ids[-1] == 2
    assert case.inputs["attention_mask"].all()
    assert types[: length // 2].max() == 0
    assert types[length // 2 :].min() == 1


def test_texts_that_are_long_enough_need_no_long_row_unless_a_token_type_is_left():
    limits = RowLimits(sequence=(1, 4))
    assert not list(batches.long_row([text(7)], TEXT, types=1, limits=limits))
    assert list(batches.long_row([text(7)], TEXT, types=2, limits=limits))
