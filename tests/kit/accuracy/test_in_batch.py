import numpy as np
import pytest

from engine.kit.accuracy import in_batch, outputs
from engine.kit.inputs.cases import Case

IDS = np.arange(1, 10).reshape(3, 3)


def tokens(rows, *, kind="sample", width=3):
    inputs = {
        "input_ids": np.stack([np.pad(row, (0, width - len(row))) for row in rows]),
        "attention_mask": np.stack([np.pad(np.ones_like(row), (0, width - len(row))) for row in rows]),
    }
    vectors = np.stack([np.cos(row.sum() * np.arange(1, 6)) for row in rows])
    return Case("-".join(str(row[0]) for row in rows), "", kind, inputs, {"y": vectors})


ALONE = [tokens([row]) for row in IDS]
TOGETHER = tokens(list(IDS), kind="batched", width=5)


def rows(cases, answers):
    usual = outputs.usual(cases, pooling=None)
    return in_batch.rows(cases, answers, pooling=None, usual=usual)


def test_each_row_of_a_batch_is_compared_with_the_answer_to_the_row_alone():
    cases = [*ALONE, TOGETHER]
    measured = rows(cases, [case.outputs for case in cases])
    assert [row.cosine for row in measured] == [pytest.approx(1)] * 3
    assert {row.case.name for row in measured} == {TOGETHER.name}
    turned = {"y": np.stack([TOGETHER.outputs["y"][0], -TOGETHER.outputs["y"][1], TOGETHER.outputs["y"][2]])}
    measured = rows(cases, [*(case.outputs for case in ALONE), turned])
    assert [round(row.cosine) for row in measured] == [1, -1, 1]


def test_a_row_that_the_original_itself_answers_otherwise_says_nothing():
    mixed = Case("mixed", "", "batched", TOGETHER.inputs, {"y": TOGETHER.outputs["y"][::-1].copy()})
    measured = rows([*ALONE, mixed], [case.outputs for case in [*ALONE, mixed]])
    assert len(measured) == 1  # the row in the middle stays in its place


def test_a_row_without_a_case_of_its_own_is_left_out():
    assert rows([ALONE[0], TOGETHER], [ALONE[0].outputs, TOGETHER.outputs])[1:] == []
    assert rows([TOGETHER], [TOGETHER.outputs]) == []
