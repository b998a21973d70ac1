"""A text that is no lock, or not as `recipe lock` writes it, is refused with the position of its first wrong line."""

import re

import lock_edits
import pytest
from lock_edits import unsealed
from small_lock import TEXT, A, B

from engine.errors import Exit, RecipeError
from engine.lockfile import file
from engine.lockfile.text import parse
from engine.text.places import Text

OTHER = "`recipe lock` would write another line here"


def test_a_lock_that_was_cut_off_anywhere_is_refused_with_its_last_line():
    whole = TEXT.rstrip()
    for end in range(len(whole)):
        with pytest.raises(RecipeError) as caught:
            parse(Text("r.lock", TEXT[:end]))
        assert re.match(r"r\.lock:\d+:\d+: ", str(caught.value)), end


BROKEN = [
    ("tools:\n", "<<<<<<< HEAD\ntools:\n", "a merge conflict is not resolved"),
    ("tools:\n", "=======\ntools:\n", "a merge conflict is not resolved"),
    ("tools:\n", ">>>>>>> main\ntools:\n", "a merge conflict is not resolved"),
    ("\nlock: ", "\nlock: 9", "this lock has the form 9"),
    ("\nlock: ", "\n# lock: ", OTHER),
    ("tools:\n", "tols:\n", OTHER),
    (f"        artifact: {B}", "        artifact: [1]", OTHER),
    (f"        key: {A}\n", "", OTHER),
    ("  onnx: 1.23.2", "  onnx: 1.23.2\n  onnx: 1.23.3", OTHER),
    ("  onnx: 1.23.2", "  onnx: {", OTHER),
    ("  onnx: 1.23.2", "  onnx: {a: b}", OTHER),
    ("  onnx: 1.23.2", "\tonnx: 1.23.2", OTHER),
    ("tools:\n", "tools: &a\n", OTHER),
    ("variants:\n", "variants: []\nx:\n", OTHER),
    ("machines:\n", "machines: x\ny:\n", OTHER),
    ("- facts:\n    cpu.isa: avx2\n", "- facts: {}\n", OTHER),
]
"""Edits of the lock that is sealed with a digest, and of the same one in the older form without a digest."""


@pytest.mark.parametrize(("old", "new", "message"), BROKEN)
@pytest.mark.parametrize("lock", [TEXT, unsealed(TEXT)], ids=["form 2", "form 1"])
def test_a_broken_lock_is_refused_with_its_place(lock, old, new, message):
    refused(lock_edits.replaced(lock, old, new), message)


@pytest.mark.parametrize("text", ["", "- a\n...\n", "...\n", "[" * 3000, "a: b\n", "lock: [2]\n", "\x00"])
def test_another_text_is_no_lock(text):
    refused(text, "")


def test_each_changed_digest_is_refused_by_the_digest_of_all_lines():
    refused(lock_edits.replaced(TEXT, f"  fetch: {A}", "  fetch: 123"), OTHER)


def refused(text, message):
    with pytest.raises(RecipeError) as caught:
        parse(Text("r.lock", text))
    assert message in str(caught.value)
    assert re.match(r"r\.lock:\d+:\d+: ", str(caught.value))
    assert caught.value.exit is Exit.USAGE
    assert caught.value.hint


def test_the_first_wrong_line_is_shown():
    with pytest.raises(RecipeError) as caught:
        parse(Text("r.lock", TEXT.replace("  onnx: 1.23.2", "  onnx: 1.23.2\n  onnx: 1.23.3")))
    number = TEXT.split("\n").index("  onnx: 1.23.2") + 1
    assert str(caught.value).startswith(f"r.lock:{number}:1: ")
    with pytest.raises(RecipeError) as caught:
        parse(Text("r.lock", TEXT.replace("  onnx: 1.23.2", "  onnx: 1.23.3")))
    assert "| digest: " in str(caught.value)


def test_aliases_upon_aliases_are_refused_at_once():
    bomb = "a0: &a0 {x: y}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 40))
    with pytest.raises(RecipeError):
        parse(Text("r.lock", f"lock: 1\nvariants:\n{bomb}...\n"))


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path):
    (tmp_path / "r.lock").write_bytes(b"lock: 1\n\xff\n...\n")
    with pytest.raises(RecipeError, match="not UTF-8") as caught:
        file.find(tmp_path / "r.lock")
    assert f"{tmp_path / 'r.lock'}:2:1" in str(caught.value)
