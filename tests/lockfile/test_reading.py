"""Unreadable locks are refused with the position of the error."""

import re

import pytest
from small_lock import TEXT, A, B

from engine.errors import Exit, RecipeError
from engine.lockfile import file
from engine.lockfile.text import parse
from engine.text.places import Text


def test_a_lock_that_was_cut_off_anywhere_is_refused_with_its_last_line():
    whole = TEXT.rstrip()
    for end in range(len(whole)):
        with pytest.raises(RecipeError) as caught:
            parse(Text("r.lock", TEXT[:end]))
        assert re.match(r"r\.lock:\d+:\d+: ", str(caught.value)), end


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tools:\n", "<<<<<<< HEAD\ntools:\n", "a merge conflict is not resolved"),
        ("tools:\n", "=======\ntools:\n", "a merge conflict is not resolved"),
        ("tools:\n", ">>>>>>> main\ntools:\n", "a merge conflict is not resolved"),
        ("tools:\n", "tols:\n", "no lock has a field 'tols' here"),
        (f"  fetch: {A}", "  fetch: 123", "'123' is no digest"),
        (f"  model: {A}", f"  model: {A[1:]}", "is no digest"),
        (f"        artifact: {B}", "        artifact: [1]", "a text is meant here"),
        (f"        key: {A}\n", "", "an artifact without the key"),
        ("  onnx: 1.23.2", "  onnx: 1.23.2\n  onnx: 1.23.3", "onnx is there twice"),
        ("  onnx: 1.23.2", "  onnx: {", "not valid YAML"),
        ("  onnx: 1.23.2", "\tonnx: 1.23.2", "not valid YAML"),
        ("lock: 2", "lock: 3", "this lock has the form 3"),
        ("lock: 2\n", "", "this is no lock"),
        (TEXT, "- a\n...\n", "this is no lock"),
        (TEXT, "...\n", "not valid YAML"),
        ("tools:\n", "tools: &a\n", "the lock was edited or merged"),
        ("variants:\n", "variants: []\nx:\n", "no lock has a field 'x' here"),
        ("- facts:\n    cpu.isa: avx2\n", "- facts: {}\n", "without the facts that head it"),
    ],
)
def test_a_broken_lock_is_refused_with_its_place(old, new, message):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    with pytest.raises(RecipeError) as caught:
        parse(Text("r.lock", text))
    assert message in str(caught.value)
    assert re.match(r"r\.lock:\d+:\d+: ", str(caught.value))
    assert caught.value.exit is Exit.USAGE
    assert caught.value.hint


def test_aliases_upon_aliases_are_refused_at_once():
    bomb = "a0: &a0 {x: y}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 40))
    with pytest.raises(RecipeError):
        parse(Text("r.lock", f"lock: 1\nvariants:\n{bomb}...\n"))


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path):
    (tmp_path / "r.lock").write_bytes(b"lock: 1\n\xff\n...\n")
    with pytest.raises(RecipeError, match="not UTF-8") as caught:
        file.find(tmp_path / "r.lock")
    assert f"{tmp_path / 'r.lock'}:2:1" in str(caught.value)
