"""Sealed files: read back as written, refused when a bit has changed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.store.sealed import sealed, unsealed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda name: name != "seal"), VALUES, max_size=4))
def test_what_was_sealed_is_read_back_and_is_json_for_everybody(fields):
    raw = sealed(fields)
    assert unsealed(raw) == fields
    assert {name: value for name, value in json.loads(raw).items() if name != "seal"} == fields


@given(st.dictionaries(st.text(min_size=1), st.integers(), max_size=3), st.data())
def test_any_other_bytes_are_refused(fields, data):
    raw = bytearray(sealed({"x": 1, **fields}))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="seal"):
        unsealed(bytes(raw))


def test_a_seal_is_for_one_place():
    raw = sealed({"a": 1}, "heads/one")
    assert unsealed(raw, "heads/one") == {"a": 1}
    for other in ("heads/two", ""):
        with pytest.raises(ValueError, match="seal"):
            unsealed(raw, other)
