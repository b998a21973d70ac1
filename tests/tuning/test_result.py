"""The result of a search: the front, and words for what it says."""

import pytest

from engine.tuning.result import TrialRow, TuneResult, front, in_words, shown


def row(number, cosine, lead, size, **fields):
    return TrialRow(number=number, point={}, state="validated", accuracies={"cosine": cosine}, lead=lead, size=size,
                    **fields)  # fmt: skip


def test_the_front_has_the_trials_that_no_other_one_beats_in_everything():
    best_in = {"accuracy": row(1, 1.0, 1.0, 90), "time": row(2, 0.98, 3.0, 40), "size": row(3, 0.97, 1.5, 20)}
    beaten, untimed = row(4, 0.97, 1.4, 30), TrialRow(number=5, point={}, state="missed", size=1)
    assert front([*best_in.values(), beaten, untimed]) == (1, 2, 3)


def test_equal_trials_are_both_on_the_front():
    assert front([row(1, 1.0, 1.0, 90), row(2, 1.0, 1.0, 90)]) == (1, 2)


def test_a_result_is_read_back_from_its_json():
    trial = row(1, 0.99, 1.2, 40, interval=(1.1, 1.3), figures={"p95_ms": 2.0})
    result = TuneResult(recipe="r", objective="o", bounds="b", trials=(trial,), front=(1,), chosen=1, why="best")
    assert TuneResult.from_json(result.to_json()) == result


def test_the_json_of_a_search_has_the_same_fields_when_it_is_interrupted():
    trials = {"recipe": "r", "objective": "o", "bounds": "b", "trials": (row(1, 1.0, 1.0, 4),), "front": (1,)}
    stopped = TuneResult(**trials, interrupted=True).to_json()
    ended = TuneResult(
        **trials, chosen=1, why="best", notes=("few",), refused=({"point": {"a": 1}, "why": "no"},)
    ).to_json()
    assert stopped.keys() == ended.keys()
    assert (stopped["chosen"], stopped["interrupted"], ended["interrupted"]) == (None, True, False)
    assert ended["refused"] == [{"point": {"a": 1}, "why": "no"}]


def test_the_chosen_trial_is_on_the_front_though_another_one_leads_it_by_noise():
    rows = [row(1, 1.0, 1.0, 90), row(2, 1.0, 1.01, 90)]
    assert front(rows) == (2,)
    assert front(rows, 1) == (1, 2)


def test_a_point_is_written_as_set_takes_it():
    point = {"precision": "int8", "quantize.weights_only": True, "instance": [{"count": 2}], "tf32": None}
    assert in_words(point) == 'precision=int8 quantize.weights_only=true instance=[{"count": 2}] tf32=null'
    assert in_words({}) == "as written"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("cosine", 0.99987654, "0.999877"),
        ("cosine", 1 - 1.3e-7, "1 - 1.3e-07"),
        ("cosine", 1.0, "1"),
        ("throughput", 1234567.8, "1234568 rows/s"),
        ("p95_ms", 2.34567, "2.346"),
        ("size", 40_000_000, "40.0 MB"),
    ],
)
def test_a_figure_has_enough_digits_no_exponent_and_its_unit_once(name, value, text):
    assert shown(name, value) == text
