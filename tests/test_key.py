"""Keys: their rows, their digests and their differences."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from engine.builder.job import Job
from engine.digest import Digest
from engine.key import Change, changes, digest_of, key_of
from engine.step import Frozen, Source, Step
from engine.text import canonical

ROWS = st.dictionaries(st.text(), st.text(), max_size=6)


class Example(Step):
    """A step with every kind of field."""

    makes: ClassVar[str] = "x"
    judged: ClassVar[tuple[str, ...]] = ("bound",)
    keyed_if_set: ClassVar[tuple[str, ...]] = ("later",)
    later: tuple[int, ...] = ()
    level: int | str = 1
    shapes: Mapping[str, int] = Field(default_factory=dict)
    samples: Source | None = None
    bound: float = 0.5

    def run(self, out): ...


def key(step, **inputs):
    return key_of(
        options=step.options(),
        code=Digest("c"),
        inputs=inputs,
        tools={"onnx": "1.0"},
        facts={"cpu.isa": "avx2"},
        variables={"SEED": "7"},
    )


def test_the_rows_name_everything_that_counts():
    assert key(Example(shapes={"batch": 2}), model="m") == {
        "code": "c",
        "env.SEED": "7",
        "facts.cpu.isa": "avx2",
        "inputs.model": "m",
        "options.level": "1",
        "options.shapes.batch": "2",
        "tools.onnx": "1.0",
    }


def test_a_later_option_is_a_row_only_where_it_differs_from_its_default():
    assert "options.later" not in key(Example())
    assert [name for name in key(Example(later=(1,))) if name.startswith("options.later")] != []


def test_bounds_and_sources_are_no_options():
    plain = key(Example())
    assert key(Example(bound=0.9)) == plain
    assert "options.samples" not in key(Example(samples=Source(uri="file:/a")))


def test_a_name_with_a_dot_is_not_a_path():
    assert 'options.shapes."a.b"' in key(Example(shapes={"a.b": 1}))


class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"


class Inner(Frozen):
    """A model in an option, with names that other options of `Nested` have as texts."""

    a: Any = None
    b: int | str | None = None


class Nested(Step):
    """A step with options of many types, several of which look alike in JSON."""

    makes: ClassVar[str] = "x"
    value: Any = None
    names: Mapping[str, Any] = {}
    numbers: Mapping[int, Any] = {}
    tags: frozenset[int | str] = frozenset()
    either: int | float | bool | str | None = None
    sizes: tuple[int | float, ...] = ()
    inner: Inner | Mapping[str, int] | None = None
    side: Side | int = 0
    place: Path = Path()
    day: date | None = None
    price: Decimal | str = ""

    def run(self, out): ...


def in_worker(step):
    """Return a step as a worker makes it: from the options of the job's task, which travel as JSON."""
    options = Job("r", "x", step, {}).traits.options
    return canonical.decode(type(step), json.loads(json.dumps(options)))


_TAGS = ("conv", "matmul", "gemm", "attention", "relu", 8, 16, 24)
_KEY_OF_A_SET = """
import sys, json
sys.path[:0] = json.loads(sys.argv[1])
import test_key
step = test_key.Nested(tags=test_key._TAGS, names={"tags": {"deep": [1]}})
print(list(step.tags))
print(test_key.digest_of(test_key.key(step)), repr(test_key.Job("r", "x", step, {}).traits.options))
"""


def test_a_step_with_a_set_has_one_key_whatever_the_order_of_hashes():
    folders = json.dumps([str(Path(__file__).parent.parent), str(Path(__file__).parent)])
    orders, keys = set(), set()
    for seed in "12":
        command = [sys.executable, "-c", _KEY_OF_A_SET, folders]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        order, options = done.stdout.splitlines()
        orders.add(order)
        keys.add(options)
    assert len(orders) > 1
    assert len(keys) == 1


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "9" * 5000, " 1", "NaN", "-Infinity", '"a"', "\ufeff1", "a\nb"],
    ids=lambda text: ascii(text[:9]),
)
def test_no_text_has_the_row_of_a_number_or_a_list(text):
    row = key(Nested(value=text))["options.value"]
    assert row in {text, json.dumps(text)}
    assert (row == text) == (text in {"9" * 5000, "\ufeff1", "a\nb"})


_ALIKE: tuple[tuple[Any, ...], ...] = (
    (1, True, 1.0, "1", "true", [1], {"1": 1}, "1.0"),
    (0, False, 0.0, -0.0, "0", "", None, "null", [], {}, "[]", "{}", [[]], [{}], {"": None}),
    (float("nan"), "NaN", float("inf"), "Infinity", float("-inf")),
    (10**30, 1e30, str(10**30), "a", '"a"', "a.b", "é", "e\u0301"),
)
"""Groups of values that a careless encoding takes for one another."""
_VALUES = [value for group in _ALIKE for value in group]
_NAMES = st.sampled_from(["a", "b", "0", "", "a.b", '"a', 'b"', '"a.b"', "\n", "\\", "é"]) | st.text(
    'ab."\\', max_size=4
)
_TREES = st.recursive(
    st.sampled_from(_VALUES) | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "value": _TREES,
    "names": st.dictionaries(_NAMES, _TREES, max_size=3),
    "numbers": st.dictionaries(st.sampled_from([0, 1, 2, 10]), _TREES, max_size=3),
    "tags": st.lists(st.sampled_from([0, 8, 16, 24, "0", "8", "a", ""]), max_size=5),
    "either": st.sampled_from([1, True, 1.0, "1", 0, False, 0.0, -0.0, "", "null", None]),
    "sizes": st.lists(st.sampled_from([1, 1.0, 2, 0.0, -0.0]), max_size=3),
    "inner": st.sampled_from([None, {}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": "2"}, {"a": {"b": 1}}, {"c": 1}]),
    "side": st.sampled_from(["left", "right", 0, 1]),
    "place": st.sampled_from(["a", "b", "a/b", "."]),
    "day": st.sampled_from([None, "2024-01-01", "2024-01-02"]),
    "price": st.sampled_from(["1", "1.0", "", "null"]),
}
_OPTIONS = st.fixed_dictionaries({}, optional=_FIELDS)


def _turned(value: Any) -> Any:
    """Return an equal value whose mappings have another order."""
    if isinstance(value, dict):
        return {name: _turned(value[name]) for name in reversed(value)}
    return [_turned(each) for each in value] if isinstance(value, list) else value


def _near_miss(draw: Any, value: Any) -> Any:
    """Return a value that looks like `value`: another type, another nesting of names, or another order of a list."""
    if isinstance(value, dict) and value:
        return _renested(draw, value)
    if isinstance(value, list) and value:
        place = draw(st.integers(0, len(value) - 1))
        missed = [*value[:place], _near_miss(draw, value[place]), *value[place + 1 :]]
        return draw(st.sampled_from([missed, [*value[place:], *value[:place]]]))
    group = next((each for each in _ALIKE if repr(value) in map(repr, each)), _ALIKE[1])
    return draw(st.sampled_from(group))


def _renested(draw: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping in which one entry has another name, is nested otherwise, or has a near miss as its value."""
    name = draw(st.sampled_from([*value]))
    others, inner = {each: value[each] for each in value if each != name}, value[name]
    first, dot, rest = name.partition(".")
    ways = [{name: _near_miss(draw, inner)}, {json.dumps(name): inner}]
    ways += [{first: {rest: inner}}] if dot else []
    ways += [{f"{name}.{last}": leaf for last, leaf in inner.items()}] if isinstance(inner, dict) else []
    return others | draw(st.sampled_from(ways))


@st.composite
def _pairs(draw: Any) -> tuple[str, Nested, Nested]:
    """Two steps: with the same options in another order, with one option that is a near miss, or with any options."""
    one = draw(_OPTIONS)
    other = {**_turned(one), "tags": [*reversed(one.get("tags", []))]}
    way = draw(st.sampled_from(["order", "near miss", "near miss", "any"]))
    if way == "any":
        other = draw(_OPTIONS)
    elif way == "near miss":
        name = draw(st.sampled_from([*_FIELDS]))
        missed = _near_miss(draw, one.get(name)) if name in {"value", "names"} else draw(_FIELDS[name])
        other[name] = missed if name != "names" or isinstance(missed, dict) else {"a": missed}
    return way, Nested(**one), Nested(**other)


def test_keys_are_equal_exactly_where_workers_see_equal_options(request):
    count = 10_000 if request.config.getoption("whole") else 250
    seen: Counter[tuple[str, bool]] = Counter()

    @settings(max_examples=count, derandomize=True, database=None, deadline=None)
    @given(_pairs())
    def agree(pair):
        way, *steps = pair
        one, other = (repr(in_worker(step)) for step in steps)  # shows types, signs of zeros and every order
        first, second = (digest_of(key(step)) for step in steps)
        assert (first == second) == (one == other)
        assert first == second or way != "order"
        seen[way, first == second] += 1

    agree()
    assert min(seen["order", True], seen["near miss", False]) > count / 10
    assert seen["near miss", True] > 0


@given(ROWS, ROWS)
def test_two_keys_share_a_digest_only_if_they_are_equal(one, other):
    assert (digest_of(one) == digest_of(other)) == (one == other)


@given(ROWS, ROWS)
def test_changes_are_exactly_what_tells_two_keys_apart(old, new):
    differences = changes(old, new)
    assert bool(differences) == (old != new)
    mended = dict(old)
    for change in differences:
        assert change == Change(change.row, old.get(change.row), new.get(change.row))
        if change.new is None:
            del mended[change.row]
        else:
            mended[change.row] = change.new
    assert mended == new
