"""The result of a search: the front, and words for what it says."""

from engine.tuning.result import TrialRow, TuneResult, front


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


def test_the_rule_of_three_is_of_the_worst_sample_where_no_bound_is_asked_for():
    said = row(1, 0.95, 1.0, 1, mean_cosine=0.99, samples=300).of_others(None)
    assert said.endswith("at most 1.0% of other samples are expected below 0.95 (95 %, rule of three)")
