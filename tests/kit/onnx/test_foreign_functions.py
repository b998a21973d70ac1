"""What this program changes in other packages: it is as it was tried, and is changed for a while only."""

import contextlib
import hashlib
import inspect

import pytest

from engine.kit.onnx import foreign_functions

NEW_RELEASE = "look at what the release has changed, try the replacement, and then write this digest down: "


def digest(function):
    text = inspect.getsource(function) if inspect.isfunction(function) else function.__doc__
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("function", foreign_functions.FUNCTIONS, ids=lambda each: each.name)
def test_a_function_that_is_replaced_is_the_one_with_which_the_replacement_was_tried(function):
    owner, name = function.place()
    now = digest(getattr(owner, name))
    assert now == function.digest, f"{NEW_RELEASE}{now}"


@pytest.mark.parametrize("function", foreign_functions.FUNCTIONS, ids=lambda each: each.name)
def test_a_function_is_replaced_within_the_context_alone_whatever_is_raised_there(function):
    owner, name = function.place()
    before, other = getattr(owner, name), object()
    with contextlib.suppress(ValueError), foreign_functions.replaced(function, lambda _: other):
        assert getattr(owner, name) is other
        raise ValueError("inside")
    assert getattr(owner, name) is before


def test_a_changed_function_is_noticed():
    def to_array(tensor, base_dir=""):
        return tensor, base_dir

    assert digest(to_array) != foreign_functions.TO_ARRAY.digest
