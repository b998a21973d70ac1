"""JSON from a remote is parsed to a depth, and no further."""

import gc
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store.remote.envelope import DEPTH, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_it_reads_what_json_reads(value):
    assert parse(json.dumps(value).encode()) == value


@given(VALUES, st.text(alphabet='["\\]{}a'))
def test_brackets_within_strings_do_not_count(value, text):
    full = [value, text, "[" * DEPTH * 2, '"\\"' + "{" * DEPTH * 2]
    assert parse(json.dumps(full).encode()) == full


@pytest.mark.parametrize("way", [("[", "]"), ('{"a":', "}"), ('[1,"\\"]",{"b":', "}]"), ('["\\\\",', "]")])
def test_the_depth_is_bounded(way):
    opening, closing = way
    levels = opening.count("[") + opening.count("{")
    times = DEPTH // levels
    assert parse((opening * times + "1" + closing * times).encode()) is not None
    with pytest.raises(ValueError, match="within each other"):
        parse((opening * (times + 1) + "1" + closing * (times + 1)).encode())


def test_many_values_beside_each_other_are_not_deep():
    value = [[each] for each in range(1000)]
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize("raw", [b"", b"\x80\x02torch", b"[\x00[\x00", b'["', b'["\\', b'"\\"' * 50_000, b"]" * 9999])
def test_other_bytes_are_a_value_error(raw):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's own
        parse(raw)


def test_what_is_cleaned_up_while_a_bomb_is_read_is_not_in_its_way(monkeypatch):
    failed = []
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    class Rubbish:
        def __init__(self):
            self.itself = self

        def __del__(self):
            sum(each for each in range(3))

    gc.collect()
    for _ in range(10):
        for _ in range(gc.get_threshold()[0] - 50):
            Rubbish()
        with pytest.raises(ValueError, match="within each other"):
            parse(b"[" * 5000)
    assert failed == []
