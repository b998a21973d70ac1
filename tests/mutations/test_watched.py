"""Each kind of rows in a snapshot is needed: with the rows a change is noticed, without them it is not."""

import os
import random

import pytest
from mutations import projects, trial, watched

pytestmark = pytest.mark.slow


def pytest_generate_tests(metafunc):
    names = list(watched.KINDS)
    if not metafunc.config.getoption("whole"):
        quick = [name for name in names if watched.KINDS[name].project != "source"]
        names = [random.Random(os.environ["RECIPE_SAMPLE_SEED"]).choice(quick)]
    metafunc.parametrize("name", names)


def test_a_kind_of_rows_is_needed_to_notice_a_change(name, built, tmp_path):
    kind = watched.KINDS[name]
    place = projects.copy_of(built(kind.project), tmp_path / "copy")
    for action in kind.prepare:
        action(place)
    place.build()
    trial.settle(place)
    assert not watched.unanswered(place)
    kind.change(place)
    assert watched.unanswered(place)
    assert watched.take_out(place, kind)
    assert not watched.unanswered(place), "other rows notice the change, too: the test says nothing about these"
