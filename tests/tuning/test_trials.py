"""Trials: a trial leaves records in the store, and nothing that a build of the recipe would remember."""

import pytest
from models import checkpoint

from engine import api
from engine.errors import JudgementError, RecipeError
from engine.events import Ended, Event
from engine.tuning.trials import TrialBuilder

RECIPE = "recipes/minilm_cpu.yaml"


@pytest.fixture
def trials(request, tmp_path):
    return TrialBuilder(request.config.rootpath / RECIPE, lambda event: None, cache=tmp_path / "cache")


def test_a_point_that_the_target_cannot_have_is_refused_and_no_job_runs(trials, tmp_path):
    outcome = trials.build({"precision": "fp8"})
    assert outcome.variant is None
    assert isinstance(outcome.error, RecipeError)
    assert not outcome.records


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The recipe of a small classifier, its trials, and the folder of their store."""
    tmp_path = tmp_path_factory.mktemp("tiny")
    checkpoint(tmp_path / "model", task="text-classification")
    (tmp_path / "samples.jsonl").write_text('{"text": "good"}\n{"text": "not bad"}\n', "utf-8")
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(
        "name: tiny\nmodel: {source: model, task: text-classification}\n"
        "profiles: [{batch: [1, 1, 4], sequence: [1, 8, 32]}]\n"
        "validate: {samples: samples.jsonl}\npackage: {}\n",
        "utf-8",
    )
    return recipe, TrialBuilder(recipe, lambda event: None, cache=tmp_path / "cache"), tmp_path / "cache"


def test_a_trial_is_built_once_and_remembered_by_the_store_alone(tiny):
    recipe, trials, cache = tiny
    events: list[Event] = []
    first = trials.build({"precision": "int8"})
    assert first.error is None
    assert first.accuracy is not None
    assert first.accuracy.cosine is not None
    assert first.size
    again = TrialBuilder(recipe, events.append, cache=cache).build({"precision": "int8"})
    ended = [event for event in events if isinstance(event, Ended)]
    assert {event.state for event in ended} == {"cached"}
    assert {each.digest for each in again.records.values()} == {each.digest for each in first.records.values()}
    assert api.history(recipe, cache=cache) == {"tiny": []}
    assert not api.show(recipe, cache=cache)[0].records


def test_a_missed_bound_is_the_error_of_a_trial_that_still_has_its_figures(tiny):
    _, trials, _ = tiny
    outcome = trials.build({"precision": "int8", "validate.cosine": 1.0})
    assert isinstance(outcome.error, JudgementError)
    assert outcome.accuracy is not None


def test_points_with_one_model_and_one_way_to_call_it_have_one_ident(tiny):
    _, trials, _ = tiny

    def ident(**point):
        built = trials.build({name.replace("__", "."): value for name, value in point.items()})
        return trials.ident(built, {"batch": 1})

    alone = ident(precision="int8")
    assert alone is not None
    assert ident(precision="int8", quantize__weights_only=False) == alone
    assert ident(precision="int8", package__triton__threads=2) != alone
    assert ident(precision="fp8") is None
