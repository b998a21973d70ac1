"""Options as JSON values: in one order, and back to equal values."""

import json
import math
from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict, Field, RootModel, computed_field

from engine.builder import jobs, registry
from engine.recipe.load import load
from engine.step import Frozen
from engine.text import canonical

RECIPES = sorted((Path(__file__).parents[2] / "recipes").rglob("*.yaml"))


class Kind(StrEnum):
    NEAR = "near"


class Sizes(RootModel[frozenset[int]]):
    """A model that is a set."""


class Inner(Frozen):
    model_config = ConfigDict(extra="allow")
    tags: frozenset[str] = frozenset()


class Outer(Frozen):
    """A model with containers in containers."""

    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()
    names: Mapping[str, Mapping[str, frozenset[int]]] = {}
    sets: frozenset[frozenset[int]] = frozenset()
    sizes: Sizes = Sizes(frozenset())
    value: Any = None
    day: date | str = ""
    renamed: int = Field(1, alias="other")
    left_out: int = Field(0, exclude=True)

    @computed_field
    @property
    def count(self) -> int:
        """The number of inner models."""
        return len(self.many)


def there_and_back(model):
    """Return the model as a worker gets it: through JSON."""
    return canonical.decode(type(model), json.loads(json.dumps(canonical.encode(model))))


def test_what_is_in_a_model_is_in_order_at_every_depth():
    model = Outer(
        inner={"z": 1, "b": 2, "tags": ["y", "x"]},
        many=({"tags": ["d", "c"]},),
        names={"b": {"d": [16, 8, 0], "c": ()}, "a": {}},
        sets={frozenset({16, 8}), frozenset({3})},
        sizes=[2, 1],
    )
    encoded = canonical.encode(model)
    assert json.dumps(encoded["inner"]) == '{"b": 2, "tags": ["x", "y"], "z": 1}'
    assert encoded["many"] == [{"tags": ["c", "d"]}]
    assert json.dumps(encoded["names"]) == '{"a": {}, "b": {"c": [], "d": [0, 16, 8]}}'
    assert encoded["sets"] == [[16, 8], [3]]
    assert encoded["sizes"] == [1, 2]
    assert there_and_back(model) == model


def test_only_the_named_fields_are_encoded_and_by_their_names():
    assert canonical.encode(Outer(other=2), ["renamed", "value"]) == {"renamed": 2, "value": None}


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.0, 0, False, 1.0, 10**30, "", "null", None, [], {}, [[{}]]])
def test_a_json_value_comes_back_as_it_was(value):
    back = there_and_back(Outer(value=value))
    assert repr(back.value) == repr(value)
    assert canonical.differing(Outer(value=value), back) == []


@pytest.mark.parametrize(
    "value",
    [(1,), {1}, {1: 2}, b"a", Kind.NEAR, {Kind.NEAR: 1}, [Kind.NEAR], Path("a"), Outer(), date(2024, 1, 1)],
    ids=repr,
)
def test_a_value_that_comes_back_as_another_one_is_a_difference(value):
    model = Outer(value=value)
    assert canonical.differing(model, there_and_back(model)) == ["value"]


def test_one_of_two_types_with_the_same_json_is_a_difference():
    for day, names in ((date(2024, 1, 1), ["day"]), ("2024-01-01", [])):
        assert canonical.differing(Outer(day=day), there_and_back(Outer(day=day))) == names


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (1, 1.0), ([1], [True]), ({"a": 1}, {"a": 1.0}), ({1}, {True}), ((1,), (1.0,))]
)
def test_equal_values_of_different_types_differ(one, other):
    assert canonical.differing(Outer(value=one), Outer(value=other)) == ["value"]


def test_neither_an_order_nor_a_field_that_is_left_out_is_a_difference():
    one = Outer(value={"a": 1, "b": {8, 16}}, left_out=1)
    assert canonical.differing(one, Outer(value={"b": {16, 8}, "a": 1})) == []
    assert canonical.differing(one, Outer(value={"b": {16, 8, 9}, "a": 1})) == ["value"]
    assert canonical.differing(Inner(z=1), Inner(z=1, y=1)) == []
    assert canonical.differing(Outer(inner=Inner(z=1)), Outer(inner=Inner(z=True))) == ["inner"]


@pytest.mark.parametrize(
    "value", [{1: 1, "1": 2}, b"\xff", object(), {"\ud800": 1}], ids=lambda value: type(value).__name__
)
def test_a_value_without_json_is_an_error(value):
    with pytest.raises(ValueError, match=r"."):
        canonical.encode(Outer(value=value))


def test_no_step_of_ours_loses_an_option():
    steps = registry.steps()
    planned = [job for path in RECIPES for each in load(path) for job in jobs.plan(each.recipe, steps)]
    assert len({job.name for job in planned}) > 10
    for job in planned:
        jobs.refuse_lossy(job.name, job.step)
