"""Keys: their rows, their digests and their differences."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
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
_SHAPES = (
    *(lambda value: value, lambda value: [value], lambda value: [value, 1], lambda value: [1, value]),
    *(lambda value: {"a": value}, lambda value: {"a": {"b": value}}, lambda value: {"b": 1, "a": value}),
    *(lambda value: {"a.b": value}, lambda value: {'"a.b"': value}, lambda value: {'"a': {'b"': value}}),
    *(lambda value: {"a": {"": {"b": value}}}, lambda value: {"a": {".b": value}}, lambda value: {"": value}),
    *(lambda value: {"0": value}, lambda value: {"\n": {"\\": value}}, lambda value: {"é": [{"a": value}]}),
)
"""Ways to nest a value, several of which a careless encoding takes for one another."""
_FIELDS: dict[str, tuple[Any, ...]] = {
    "tags": ([8, 16], [16, 8], [8], ["8"], [8, 8], ["a"], [""], []),
    "either": (1, True, 1.0, "1", 0, False, 0.0, -0.0, "", "null", None),
    "sizes": ([1], [1.0], [2], [0.0], [-0.0], [1, 2], [2, 1], []),
    "inner": (None, {}, {"a": 1}, {"a": 1, "b": 2}, {"a": 1, "b": "2"}, {"a": {"b": 1}}, {"c": 1}),
    "side": ("left", "right", 0, 1),
    "place": ("a", "b", "a/b", "."),
    "day": (None, "2024-01-01", "2024-01-02"),
    "price": ("1", "1.0", "", "null"),
}


def _options() -> Iterator[dict[str, Any]]:
    for value in _VALUES:
        nested = [shape(value) for shape in _SHAPES]
        yield from ({"value": each} for each in nested)
        yield from ({"names": each} for each in nested if isinstance(each, dict))
        yield from ({"numbers": {number: value}} for number in (0, 1, 10))
    yield from ({name: each} for name, values in _FIELDS.items() for each in values)


def _turned(value: Any) -> Any:
    """Return an equal value whose mappings have another order."""
    if isinstance(value, dict):
        return {name: _turned(value[name]) for name in reversed(value)}
    return [_turned(each) for each in value] if isinstance(value, list) else value


def test_keys_are_equal_exactly_where_workers_see_equal_options():
    seen: dict[str, set[str]] = {}
    for options in _options():
        for each in (options, _turned(options)):
            step = Nested(**each)
            # The text of a step shows types, signs of zeros and every order.
            seen.setdefault(digest_of(key(step)), set()).add(repr(in_worker(step)))
    assert {len(texts) for texts in seen.values()} == {1}
    assert len(set().union(*seen.values())) == len(seen) > 800


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
