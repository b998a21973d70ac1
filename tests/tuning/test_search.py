"""Search: no job runs twice, the same search runs nothing, and a killed one goes on where it was."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from small_builds import project_in
from toy_search import BOUND, REFUSED, SPACE, ToyTrials, search

from engine.errors import UsageError
from engine.store.store import Store
from engine.tuning.objective import Objective
from engine.tuning.result import ENOUGH_SAMPLES

PROGRAM = Path(__file__).parent.parent / "support" / "toy_search.py"
TRIALS = 40


@pytest.fixture
def project(tmp_path):
    return project_in(tmp_path)


def outline(result):
    """What a search says, without the seconds of its jobs."""
    rows = [replace(row, seconds=0.0) for row in result.trials]
    return rows, result.front, result.chosen, result.why, result.refused


def test_no_job_of_a_search_runs_twice_and_the_same_search_runs_nothing(project):
    trials = ToyTrials(project)
    first = search(trials, most=15).run()
    assert [row.number for row in first.trials] == list(range(1, 16))
    assert max(Counter(trials.ran).values()) == 1
    assert Counter(trials.names)["prepare"] == 1, "all trials have one step in common"
    assert {str(each.digest) for each in Store(project / "cache").records()} == set(trials.ran)
    again = ToyTrials(project)
    assert outline(search(again, most=15).run()) == outline(first)
    assert again.ran == []


def test_a_larger_budget_runs_only_new_trials_after_the_same_ones(project):
    small, large = ToyTrials(project), ToyTrials(project)
    few = search(small, most=12).run()
    many = search(large, most=20).run()
    assert [row.point for row in many.trials[:12]] == [row.point for row in few.trials]
    assert large.ran
    assert not set(large.ran) & set(small.ran)


def test_a_budget_counts_the_recorded_seconds_of_jobs_each_once():
    whole = search(ToyTrials(), most=20).run()
    budget = sum(row.seconds for row in whole.trials[:7]) + 1e-6
    again = ToyTrials()
    result = search(again, budget=budget).run()
    assert [row.point for row in result.trials] == [row.point for row in whole.trials[: len(result.trials)]]
    assert 7 <= len(result.trials) <= 9, "the records say when the budget is spent, and not the clock"


def test_a_search_begins_with_the_recipe_and_each_precision_and_asks_for_no_point_twice():
    result = search(ToyTrials(), most=TRIALS).run()
    points = [json.dumps(row.point, sort_keys=True) for row in result.trials]
    assert result.trials[0].point == {}
    assert len(set(points)) == len(points)
    assert {"precision": "lowest"} in [row.point for row in result.trials[:3]]


def test_points_that_are_refused_are_no_trials():
    result = search(ToyTrials(), most=TRIALS).run()
    assert result.refused
    assert all(row.point.get("tiles") != REFUSED for row in result.trials)
    assert len(result.trials) == TRIALS


def test_a_small_space_is_asked_for_whole(monkeypatch):
    small = replace(SPACE, knobs=SPACE.knobs[1:3])
    monkeypatch.setattr("toy_search.SPACE", small)
    result = search(ToyTrials(), most=1000).run()
    assert len(result.trials) + len(result.refused) == 3 * 6


def test_the_choice_keeps_the_bounds_and_is_the_best_of_the_trials():
    result = search(ToyTrials(), most=60).run()
    chosen = result.row(result.chosen)
    kept = [row for row in result.trials if row.state in ("validated", "cut")]
    assert chosen.accuracies["cosine"] >= BOUND
    assert chosen.figures["p95_ms"] == min(row.figures["p95_ms"] for row in kept)
    assert "as fast as the recipe as it is written" in result.why
    assert result.row(result.finals[0]).point == {}
    assert chosen.number in result.front


def test_a_sampler_that_learns_finds_a_better_point_than_most_of_the_space():
    result = search(ToyTrials(), most=TRIALS).run()
    best = max(row.lead for row in result.trials if row.lead)
    assert best > 2.7, "the best of all points that keep the bound leads by 2.73"


def test_the_figures_of_the_last_race_replace_those_of_the_first_one_everywhere(monkeypatch):
    again = search(ToyTrials(), most=TRIALS)
    one_race, last = again._race, {}

    def slower(rows, *, cut):
        raced = one_race(rows, cut=cut)
        if not cut:
            raced = [replace(row, lead=(row.lead or 1) / 3) for row in raced]
            last.update({row.number: row for row in raced})
        return raced

    monkeypatch.setattr(again, "_race", slower)
    result = again.run()
    assert len(last) > 2
    assert result.finals == tuple(last)
    assert all(result.row(number) is row for number, row in last.items())
    assert result.chosen in result.front
    assert result.finals[0] == next(row.number for row in result.trials if row.figures)


def model(point):
    """Return the same text for points that differ in `levels` alone."""
    return json.dumps({**point, "levels": 0}, sort_keys=True)


def test_a_point_that_gives_the_model_of_another_one_is_no_trial(monkeypatch):
    trials = ToyTrials()
    monkeypatch.setattr(trials, "ident", lambda built, sizes: model(built.point))
    result = search(trials, most=TRIALS).run()
    points = [model(row.point) for row in result.trials]
    same = [each for each in result.refused if each["why"].startswith("it gives the same model as trial ")]
    assert same
    assert len(set(points)) == len(points) == TRIALS


def test_a_bound_that_cannot_be_measured_ends_the_search_after_its_first_trial():
    objective = Objective("p95_ms", {"batch": 1}, {"rank": 0.9}, {})
    trials = ToyTrials()
    with pytest.raises(UsageError, match="bounds rank, which could not be measured"):
        search(trials, most=8, objective=objective).run()


def test_a_search_with_nothing_left_to_search_says_so(monkeypatch):
    monkeypatch.setattr("toy_search.SPACE", replace(SPACE, knobs=()))
    [note] = search(ToyTrials(), most=8).run().notes[1:]
    assert note == "nothing was left to search but the recipe as it is written"


def test_a_limit_on_size_makes_trials_miss_it():
    objective = Objective("p95_ms", {"batch": 1}, {"cosine": BOUND}, {"size": 200})
    result = search(ToyTrials(), most=20, objective=objective).run()
    assert result.trials[0].state == "missed"
    assert "size" in result.trials[0].why
    assert result.row(result.chosen).size <= 200
    assert "failed or misses a bound" in result.why


def test_no_trial_that_keeps_the_bounds_gives_no_choice_and_the_nearest_values():
    objective = Objective("p95_ms", {"batch": 1}, {"cosine": BOUND}, {"p95_ms": 0.001})
    result = search(ToyTrials(), most=8, objective=objective).run()
    assert result.chosen is None
    [cosine, latency] = objective.nearest(result.trials)
    assert cosine == "cosine at least 0.9 is asked for; the best is 1"
    assert latency.startswith("p95_ms at most 0.001 is asked for; the best is ")


def test_the_recipe_stays_where_no_other_trial_leads_beyond_the_noise(monkeypatch):
    monkeypatch.setattr(ToyTrials, "noise", 0.9)
    result = search(ToyTrials(), most=20).run()
    assert result.row(result.chosen).point == {}
    assert "no more than the noise" in result.why


def test_a_slow_trial_is_cut_but_not_where_the_size_counts(monkeypatch):
    monkeypatch.setattr("toy_search.BOUND", 0.0)
    monkeypatch.setattr(
        "search_steps.Figures.milliseconds", property(lambda self: 9.0 if self.precision == "low" else 1.0)
    )
    limits = Objective("p95_ms", {"batch": 1}, {}, {"size": 300})
    small = Objective("size", {"batch": 1}, {}, {})
    assert search(ToyTrials(), most=2, objective=small).run().trials[1].state == "validated"
    slow_search = search(ToyTrials(), most=2, objective=limits)
    slow = slow_search.run()
    assert [row.state for row in slow_search.rows] == ["missed", "cut"]
    assert slow_search.rows[1].why == "surely more than 1.25 x slower than the baseline"
    assert "over at most 300 bytes" in slow_search.rows[0].why
    assert slow.chosen == 2, "a slow trial that keeps the bounds is better than none"


def test_the_smallest_model_needs_no_lead_in_time():
    objective = Objective("size", {"batch": 1}, {"cosine": BOUND}, {})
    result = search(ToyTrials(), most=12, objective=objective).run()
    assert result.row(result.chosen).size == 100
    assert "25% of the size" in result.why


def test_an_interrupted_search_has_the_front_of_its_trials_and_no_choice():
    trials = ToyTrials()
    stopped = search(trials, most=TRIALS)

    def stop(row):
        if row.number == 5:
            raise KeyboardInterrupt

    stopped.on_row = stop
    with pytest.raises(KeyboardInterrupt):
        stopped.run()
    result = stopped.result()
    assert len(result.trials) == 5
    assert result.front
    assert result.chosen is None
    assert stopped.result(interrupted=True).interrupted


def test_the_accuracy_is_said_for_other_samples_and_few_samples_are_a_warning():
    trials = ToyTrials()
    result = search(trials, most=2).run()
    said = result.trials[1].of_others(BOUND)
    assert "worst 0.95 of 64 samples" in said
    assert "at most 4.7% of other samples are expected below 0.9 (95 %, rule of three)" in said
    assert not any("samples:" in note for note in result.notes)
    few = search(trials, most=2)
    few.rows.append(replace(result.trials[0], samples=ENOUGH_SAMPLES - 1))
    assert "49 samples" in few.result().notes[0]


KILLS = [
    pytest.param(1, 8, id="few"),
    pytest.param(20, TRIALS, id="many", marks=pytest.mark.whole("few kills always run")),
]


@pytest.mark.parametrize(("kills", "most"), KILLS)
def test_a_search_that_is_killed_goes_on_and_ends_with_the_same_front(tmp_path, kills, most):
    command = [sys.executable, str(PROGRAM), str(tmp_path / "killed"), str(most)]
    environment = {"PYTHONPATH": ":".join(sys.path)}
    undisturbed = subprocess.run([*command[:2], str(tmp_path / "whole"), command[3]], env=environment, check=True,
                                 capture_output=True, text=True)  # fmt: skip
    ran, expected = read(undisturbed.stdout)
    assert expected["front"]
    instants = random.Random(kills)
    seconds = 0.02 * len(ran) / kills
    lost = []
    for _ in range(kills):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        wait_for_a_line(process)
        time.sleep(instants.uniform(0, seconds))
        process.kill()
        lost += read(process.communicate()[0])[0]
    finished = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    last, result = read(finished.stdout)
    assert max(Counter([*lost, *last]).values()) == 1, "what has ended is never lost"
    assert last, "the kills came before the end"
    assert untimed(result) == untimed(expected)


def wait_for_a_line(process):
    """Wait until the search has begun, or has nothing left to run."""
    process.stdout.readline()


def untimed(result):
    return {**result, "trials": [{**row, "seconds": None} for row in result["trials"]]}


def read(output):
    """Return the keys of the jobs that ran, and the result of a search that has ended."""
    lines = output.splitlines()
    results = [json.loads(line.removeprefix("result ")) for line in lines if line.startswith("result ")]
    return [line.split()[1] for line in lines if line.startswith("ran ") and len(line.split()) == 2], next(
        iter(results), None
    )
