"""One field of a YAML text is set, added or removed, and every other character stays."""

import pytest
import yaml

from engine.drafts import yaml_edit

BLOCK = "a: 1  # one\nb:\n  # inside\n  c: [1, 2]\n  d: |\n    # text\n    more\n# below\ne: {f: x, g: y}\n"


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("a",), 2, "a: 1  # one", "a: 2  # one"),
        (("b", "c"), [7], "[1, 2]", "[7]"),
        (("e", "g"), "on", "g: y", 'g: "on"'),
        (("e", "h"), [1], "g: y}", "g: y, h: [1]}"),
        (("b", "m"), True, "    more\n", "    more\n  m: true\n"),
        (("b", "d"), "t", "d: |\n    # text\n    more\n", "d: t\n"),
        (("e", "h", "i"), 1, "g: y}", "g: y, h: {i: 1}}"),
        (("b",), 3, "b:\n  # inside\n  c: [1, 2]\n  d: |\n    # text\n    more\n", "# inside\nb: 3\n"),
        (("bench",), {"threads": 2}, "g: y}\n", "g: y}\nbench:\n  threads: 2\n"),
    ],
)  # fmt: skip
def test_a_value_is_set_where_it_stands_and_nothing_else_changes(path, value, old, new):
    assert yaml_edit.with_value(BLOCK, path, value) == BLOCK.replace(old, new)
    assert old in BLOCK


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (("a",), "a: 1  # one\n", ""),
        (("b", "c"), "  c: [1, 2]\n", ""),
        (("b", "d"), "  d: |\n    # text\n    more\n", ""),
        (("e", "f"), "f: x, ", ""),
        (("e", "g"), ", g: y", ""),
        (("b",), "b:\n  # inside\n  c: [1, 2]\n  d: |\n    # text\n    more\n", "# inside\n"),
        (("nothing",), "", ""),
    ],
)
def test_a_field_is_removed_with_the_comment_behind_it_and_not_with_those_around_it(path, old, new):
    assert yaml_edit.without(BLOCK, path) == BLOCK.replace(old, new)


def test_the_last_field_of_a_mapping_leaves_an_empty_mapping():
    assert yaml_edit.without("a: 1\nb:\n  c: 2\n", ("b", "c")) == "a: 1\nb: {}\n"
    assert yaml_edit.without("a: 1\nb: {c: 2}", ("b", "c")) == "a: 1\nb: {}"


@pytest.mark.parametrize("text", ["a:", "a: ", "a:\nb: 1\n", "a:  # empty\n", "a:\n  - 1\n  # why\n  - 2\n", "{a: 1}"])
def test_a_value_of_any_form_becomes_another_one(text):
    for value in (5, "x", {"k": 1}, [{"k": 1}], [1, 2]):
        changed = yaml_edit.with_value(text, ("a",), value)
        assert yaml.safe_load(changed)["a"] == value
        assert [word for word in ("# empty", "# why") if word in text and word not in changed] == []


def test_comments_are_told_from_texts_with_a_hash():
    text = "a: \"# no\"\nb: x#no  # yes\nc: |\n  # no\nd: '# no'  # also\n# last"
    assert [text[start:end] for start, end in yaml_edit.comments(text)] == ["# yes", "# also", "# last"]
