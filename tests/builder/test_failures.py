"""The reasons of a failed build, and assignments as mappings, for callers in Python."""

import pickle
from pathlib import Path

import pytest

from engine.errors import Exit, JudgementError, StepError, UsageError
from engine.events import BuildFailedError, BuildFailure, Finished
from engine.recipe import overrides

ERROR = StepError("the number is wrong", ["it is 0"], "write another number")
FAILURE = BuildFailure("net", "last", "last", ERROR, Path("cache/logs/x.failed.log"))


def failed(*failures):
    return Finished("failed", 1.0, Exit.FAILED, {}, failures)


def test_a_failed_build_shows_its_reasons_and_raises_them():
    assert repr(failed(FAILURE)) == "<Finished failed in 1.0 s; net last: the number is wrong>"
    with pytest.raises(BuildFailedError) as caught:
        failed(FAILURE).raise_failures()
    error = caught.value
    assert str(error).splitlines() == [
        "net last failed: the number is wrong",
        "  it is 0",
        "  log: cache/logs/x.failed.log",
        "hint: write another number",
    ]
    assert pickle.loads(pickle.dumps(error)).what == error.what
    failed().raise_failures()


def test_several_failures_are_one_error_with_the_worst_exit_code():
    missed = BuildFailure("net", "bench", "bench", JudgementError("too slow"))
    with pytest.raises(BuildFailedError) as caught:
        failed(missed, FAILURE).raise_failures()
    assert caught.value.what == "2 jobs failed"
    assert caught.value.facts == ("net bench: too slow", "net last: the number is wrong")
    assert caught.value.exit is Exit.FAILED


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ({"precision": "fp32"}, ('precision="fp32"',)),
        ({"bench.shapes": [{"batch": 8}], "hermetic": True}, ('bench.shapes=[{"batch": 8}]', "hermetic=true")),
        ({"model.source": Path("net.onnx"), "bench": None}, ('model.source="net.onnx"', "bench=null")),
        ("precision=fp32", ("precision=fp32",)),
        (["precision=fp32"], ("precision=fp32",)),
    ],
)
def test_assignments_are_a_mapping_or_texts(given, texts):
    assert overrides.texts(overrides.SET, given) == texts
    assert overrides.assignments(overrides.SET, texts)


@pytest.mark.parametrize("given", [{"precision": object()}, {1: "fp32"}])
def test_what_no_recipe_can_have_is_refused(given):
    with pytest.raises(UsageError) as caught:
        overrides.texts(overrides.SET, given)
    assert caught.value.hint
