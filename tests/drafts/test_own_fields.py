"""What a recipe's own text must say, so that it and its parents' fields together are what is asked."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from engine.drafts import own_fields
from engine.drafts.own_fields import GONE, difference
from engine.recipe.node import merged, plain
from engine.recipe.yaml_text import parse
from engine.text.places import Text

LEAVES = st.one_of(st.integers(0, 2), st.booleans(), st.lists(st.integers(0, 1), max_size=2))
TREES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)  # fmt: skip
MAPPINGS = st.dictionaries(st.sampled_from("abc"), TREES, max_size=3)


def node(value):
    return parse(Text("r.yaml", own_fields._json(value)))


def put(value, path, new):
    *parents, last = path
    for each in parents:
        value = value[each]
    if new is GONE:
        del value[last]
    else:
        value[last] = new


@given(MAPPINGS, MAPPINGS, MAPPINGS)
def test_change_after_change_a_child_and_its_parent_become_what_is_asked(own, parent, target):
    own, count = copy.deepcopy(own), 0
    while (change := difference(own, parent, target)) is not None:
        put(own, change[0], change[1] if change[1] is GONE else copy.deepcopy(change[1]))
        count += 1
        assert count < 50
    assert own_fields._same(plain(merged(node(parent), node(own))), target)


def test_nothing_differs_where_the_parent_says_it_already():
    assert difference({}, {"a": {"b": 1}}, {"a": {"b": 1}}) is None
    assert difference({"a": 1}, {}, {"a": 1.0}) == (("a",), 1.0)


def test_only_what_differs_from_the_parent_is_said():
    parent = {"a": {"b": 1, "c": 2}, "d": 3}
    assert difference({}, parent, {"a": {"b": 1, "c": 5}, "d": 3}) == (("a",), {"c": 5})
    assert difference({}, parent, {"a": {"b": 1}, "d": 3}) == (("a",), {"c": None})
    assert difference({}, parent, {"a": {"b": 1, "c": 2}}) == (("d",), None)
    assert difference({"e": 1}, parent, parent) == (("e",), GONE)
