"""Lock -> text -> lock."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from small_lock import LOCK, TEXT, B

from engine.lockfile.content import Lock, LockedJob, LockedOutput, LockedVariant, sections
from engine.lockfile.text import dump, parse
from engine.text.places import Text


def test_a_lock_is_read_back_as_it_was_written():
    assert parse(Text("r.lock", TEXT)) == LOCK


def test_a_lock_begins_with_what_it_is_and_each_fact_has_a_line():
    assert TEXT.startswith("# ")
    assert "edit" in TEXT.split("lock: 2")[0]
    assert "  onnx: 1.23.2\n" in TEXT
    assert f"        artifact: {B}\n" in TEXT


def test_the_text_is_the_same_whatever_order_the_facts_were_gathered_in():
    def turned(rows):
        return dict(reversed(rows.items()))

    other = replace(LOCK, sources=turned(LOCK.sources), tools=turned(LOCK.tools), steps=turned(LOCK.steps))
    assert dump(other) == TEXT


def test_a_checkout_with_other_line_ends_says_the_same():
    assert parse(Text("r.lock", TEXT.replace("\n", "\r\n"))) == LOCK


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
