"""Keys: their rows, their digests and their differences."""

from collections.abc import Mapping
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from engine.digest import Digest
from engine.key import Change, changes, digest_of, key_of
from engine.step import Source, Step

ROWS = st.dictionaries(st.text(), st.text(), max_size=6)


class Example(Step):
    """A step with every kind of field."""

    makes: ClassVar[str] = "x"
    judged: ClassVar[tuple[str, ...]] = ("bound",)
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


def test_bounds_and_sources_are_no_options():
    plain = key(Example())
    assert key(Example(bound=0.9)) == plain
    assert "options.samples" not in key(Example(samples=Source(uri="file:/a")))


def test_a_name_with_a_dot_is_not_a_path():
    assert 'options.shapes."a.b"' in key(Example(shapes={"a.b": 1}))


def test_a_number_and_its_text_are_different_rows():
    assert key(Example(level=1)) != key(Example(level="1"))


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
