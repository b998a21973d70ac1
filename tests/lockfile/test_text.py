"""Lock -> text -> lock."""

import re
from dataclasses import replace

import lock_edits
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lock_edits import unsealed
from small_lock import LOCK, TEXT, A, B

from engine.errors import Exit, RecipeError
from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, sections
from engine.lockfile.locking import find_lock
from engine.lockfile.text import dump, parse
from engine.text.places import Text


def test_a_lock_begins_with_what_it_is_and_each_fact_has_a_line_whatever_its_end():
    for text in (TEXT, TEXT.replace("\n", "\r\n")):
        assert parse(Text("r.lock", text)) == LOCK
    assert parse(Text("r.lock", unsealed(TEXT))) == replace(LOCK, is_sealed=False)
    assert TEXT.startswith("# ")
    assert "edit" in TEXT.split("lock: 2")[0]
    assert "  onnx: 1.23.2\n" in TEXT
    assert f"        artifact: {B}\n" in TEXT


def test_the_text_is_the_same_whatever_order_the_facts_were_gathered_in():
    def turned(rows):
        return dict(reversed(rows.items()))

    other = replace(LOCK, sources=turned(LOCK.sources), tools=turned(LOCK.tools), steps=turned(LOCK.steps))
    assert dump(other) == TEXT


texts = st.text(max_size=20) | st.sampled_from(
    ["", "yes", "1e3", "null", "- a", "a: b", "a #b", "'", '"', "...", "---", "<<", "\t", "\x85", "\U0001f600", "a:"]
)
digests = st.text("0123456789abcdef", min_size=32, max_size=32)
rows = st.dictionaries(texts, texts, max_size=3)
names = st.text("abc-", min_size=1, max_size=4)
output = st.builds(LockedOutput, digests, st.none() | digests)
jobs = st.builds(
    LockedJob,
    needs=rows,
    reads=rows,
    gates=st.lists(names, max_size=2).map(tuple),
    options=rows,
    output=st.none() | output,
)
machines = st.lists(
    st.tuples(st.dictionaries(names, texts, min_size=1, max_size=2), st.tuples(names, names), output), max_size=3
)


@given(
    st.builds(
        Lock,
        sources=st.dictionaries(texts, digests, max_size=3),
        tools=rows,
        steps=st.dictionaries(texts, digests, max_size=3),
        variants=st.dictionaries(
            texts, st.builds(LockedVariant, rows, st.dictionaries(texts, jobs, max_size=2)), max_size=2
        ),
        machines=machines.map(sections),
        version=texts,
        is_sealed=st.booleans(),
    )
)
def test_whatever_a_lock_says_comes_back_and_is_written_with_the_same_bytes(lock):
    text = dump(lock)
    read = parse(Text("r.lock", text))
    assert read == lock
    assert dump(read) == text


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
    refused(TEXT.replace("lock: 2\n", "lock: 1\n"), OTHER)


def test_aliases_upon_aliases_are_refused_at_once():
    bomb = "a0: &a0 {x: y}\n" + "".join(f"a{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}\n" for n in range(1, 40))
    with pytest.raises(RecipeError):
        parse(Text("r.lock", f"lock: 1\nvariants:\n{bomb}...\n"))


def test_bytes_that_are_no_text_are_refused_with_their_place(tmp_path):
    (tmp_path / "r.lock").write_bytes(b"lock: 1\n\xff\n...\n")
    with pytest.raises(RecipeError, match="not UTF-8") as caught:
        find_lock(tmp_path / "r.lock")
    assert f"{tmp_path / 'r.lock'}:2:1" in str(caught.value)
