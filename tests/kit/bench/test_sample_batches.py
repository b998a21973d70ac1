"""Batches of samples, measured by a simulated clock: a position takes a microsecond, and a call a little more."""

import json

import models
import pytest

from engine.errors import JudgementError, StepError
from engine.kit.bench import budgets, sample_batches, sample_rows
from engine.kit.bench.interleaving import Budget, Contender
from engine.kit.bench.report import BenchReport
from engine.kit.bench.sample_batches import Sweep, measure_sweeps
from engine.kit.onnx.onnx_files import Input

SPECS = {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")}
SHAPE = {"batch": 4, "sequence": "samples"}
BUDGET = Budget(seconds=0.05, warm_up=0.0, rounds=5)


class Machine:
    """A clock that each call moves on by the seconds that its batch takes, and the names of the called contenders."""

    def __init__(self):
        self.now, self.calls = 0.0, []

    def clock(self):
        return self.now

    def _contender(self, name, seconds, *, ours=True):
        def prepare(batch):
            def call():
                self.calls.append(name)
                self.now += seconds(batch)

            return call

        return Contender(runtime=name, via="in-process", ours=ours, prepare=prepare)

    def contender(self, name, *, ours, factor=1.0, call_us=20):
        return self._contender(name, lambda batch: factor * (batch["input_ids"].size + call_us) * 1e-6, ours=ours)

    def sweep(self, name, *seconds):
        return Sweep(self._contender(name, lambda batch: batch), 1, "arrival", seconds)


@pytest.fixture
def rows(tmp_path):
    models.save_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    texts = ["good " * (30 if number % 4 == 0 else 3) for number in range(32)]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return sample_rows.read(path, tmp_path, SPECS)


def measured(rows, *contenders, shape=SHAPE, limits=None, machine=None):
    machine = machine or Machine()
    taken = contenders or (machine.contender("a-fp32", ours=True), machine.contender("b-fp32", ours=False, factor=2))
    return sample_batches.measured(shape, rows, taken, BUDGET, limits or {}, until=1e9, clock=machine.clock)


def test_each_model_has_a_row_for_each_order_on_the_same_batches(rows):
    timed, _ = measured(rows)
    named = [(row.runtime, row.samples.order, row.samples.padding, row.ratio_to) for row, _ in timed]
    tokens, positions = 8 * 32 + 24 * 5, 32 * 32
    waste = round(1 - tokens / positions, 4)
    assert named == [
        ("a-fp32", "arrival", waste, {"b-fp32": 2.0}),
        ("b-fp32", "arrival", waste, {}),
        ("a-fp32", "sorted", 0.0, {"b-fp32": 2.0}),
        ("b-fp32", "sorted", 0.0, {}),
    ]
    row, rounds = timed[0]
    assert row.shape == SHAPE
    assert row.runs == sum(map(len, rounds))
    assert row.samples.texts_per_s == pytest.approx(32 / ((positions + 8 * 20) * 1e-6), rel=1e-3)
    assert row.samples.tokens_per_s == pytest.approx(tokens / 32 * row.samples.texts_per_s, rel=1e-3)
    assert row.p50_ms == pytest.approx(0.148)  # a call is one batch of 4 x 32


def test_the_gain_of_sorting_and_the_fastest_batch_size_are_those_of_the_clock(rows):
    timed, lengths = measured(rows)
    tokens, positions = 8 * 32 + 24 * 5, 32 * 32
    assert timed[0][0].samples.gain is None
    for row, _ in timed[2:]:
        assert row.samples.gain == pytest.approx((positions + 160) / (tokens + 160), rel=1e-3)
        assert row.samples.gain_interval == pytest.approx((row.samples.gain, row.samples.gain))
    assert [(each.batch, each.order) for each in lengths.batchings] == [
        (1, "arrival"), (4, "arrival"), (4, "sorted"), (8, "arrival"), (8, "sorted"),
    ]  # fmt: skip
    fastest = lengths.fastest()
    assert (fastest.batch, fastest.order) == (8, "sorted")  # no padding, and the fewest calls
    assert fastest.pays
    assert lengths.fastest("arrival").batch == 1
    assert lengths.buckets == (8, 32)
    assert (lengths.texts, lengths.tokens, lengths.longest, lengths.limit) == (32, tokens, 32, 64)


def test_a_budget_holds_for_calls_in_the_order_of_arrival(rows):
    timed, _ = measured(rows, limits={"p50_ms": 0.1})
    report = BenchReport(threads=1, cpu="a CPU", rows=tuple(row for row, _ in timed))
    budgets.judge(report, [{"p50_ms": 0.15}])
    with pytest.raises(JudgementError, match="batch 4 x sequence samples in arrival order: p50_ms is 0"):
        budgets.judge(report, [{"p50_ms": 0.1}])


def test_a_shape_of_batch_1_is_measured_in_both_orders_too(rows):
    timed, lengths = measured(rows, shape={"batch": 1, "sequence": "samples"})
    assert len(timed) == 4
    assert [(each.batch, each.order) for each in lengths.batchings][:2] == [(1, "arrival"), (1, "sorted")]


def test_a_rival_with_the_same_name_is_told_apart(rows):
    machine = Machine()
    models = machine.contender("a-fp32", ours=True), machine.contender("a-fp32", ours=False, factor=3, call_us=2000)
    timed, _ = measured(rows, *models, machine=machine)
    gains = [row.samples.gain for row, _ in timed[2:]]
    assert gains[0] > 1.5
    assert gains[1] < 1.1  # calls cost the rival more than padding


def test_without_the_recipe_s_own_model_nothing_but_rivals_is_measured(rows):
    machine = Machine()
    timed, lengths = measured(rows, machine.contender("b-fp32", ours=False), machine=machine)
    assert [row.runtime for row, _ in timed] == ["b-fp32", "b-fp32"]
    assert lengths.batchings == ()
    assert lengths.fastest() is None


@pytest.mark.parametrize("shape", [{"batch": "samples"}, {"batch": 1, "tokens": "samples"}, {"sequence": 8}])
def test_a_shape_whose_samples_are_not_on_the_axis_of_tokens_is_refused(rows, shape):
    with pytest.raises(StepError, match="does not suit the model") as caught:
        measured(rows, shape=shape)
    assert "{batch: 8, sequence: samples}" in caught.value.hint


def test_a_turn_holds_whole_sweeps_whose_calls_are_timed_apart():
    machine = Machine()
    slow, fast = machine.sweep("slow", 0.2, 0.1), machine.sweep("fast", 0.05)
    timed = measure_sweeps([slow, fast], Budget(seconds=6, warm_up=0, rounds=5), clock=machine.clock)
    rounds = [each.hot for each in timed]
    assert [each.waited for each in timed] == [[0.0] * 5] * 2
    assert [len(each) for each in rounds] == [5, 5]
    for calls in rounds[0]:
        assert calls == pytest.approx([0.2, 0.1] * (len(calls) // 2))
    assert [sum(calls) / len(calls) for calls in rounds[1]] == pytest.approx([0.05] * 5)
    assert machine.now < 8


def test_long_sweeps_have_fewer_rounds_but_at_least_three():
    machine = Machine()
    taken = [machine.sweep("a", 2.0), machine.sweep("b", 2.0)]
    timed = measure_sweeps(taken, Budget(seconds=1, warm_up=0, rounds=10), clock=machine.clock)
    rounds = [each.hot for each in timed]
    assert [len(each) for each in rounds] == [3, 3]
    assert all(len(calls) == 1 for each in rounds for calls in each)


def test_the_order_of_the_turns_changes_from_round_to_round():
    machine = Machine()
    taken = [machine.sweep(name, 1.0) for name in "abc"]
    measure_sweeps(taken, Budget(seconds=3, warm_up=0, rounds=3), clock=machine.clock)
    turns = machine.calls[3:][::2]  # after the warm-up; each turn is an untimed call and a timed one
    assert "".join(turns) == "abc" + "cba" + "bca"


def test_a_longer_budget_measures_more_sweeps():
    machine = Machine()
    budget = Budget(seconds=1, warm_up=0.1, rounds=5)
    counts = [
        sum(map(len, measure_sweeps([machine.sweep("a", 0.01)], each, clock=machine.clock)[0].hot))
        for each in (budget, budget.longer(2))
    ]
    assert counts[1] >= 1.9 * counts[0]
