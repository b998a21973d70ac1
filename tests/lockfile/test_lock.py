"""A lock as a value: its text and back, what differs from it, and what a second machine adds."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import Exit, LockError, RecipeError, UsageError
from engine.lockfile import file
from engine.lockfile.content import Lock, LockedJob, LockedVariant, Made, Section, sections
from engine.lockfile.differences import Scope, differences, refuse
from engine.lockfile.merging import merged
from engine.lockfile.text import dump, parse
from engine.recipe.text import Text

A, B, C, D = (letter * 32 for letter in "abcd")
AVX2, AVX512 = {"cpu.isa": "avx2"}, {"cpu.isa": "avx2 avx512f"}
LOCK = Lock(
    sources={"model": A, "samples/s.jsonl": B, "hf:acme/tiny@main": "1" * 40},
    tools={"onnx": "1.23.2", "numpy": "2.10"},
    steps={"fetch": A, "validate": B},
    variants={
        "tiny": LockedVariant(
            {"name": "tiny", "validate.cosine.at_least": "0.5"},
            {
                "fetch": LockedJob(reads={"source": "model"}, options={"weights": "safetensors"}, made=Made(A, B)),
                "validate": LockedJob(needs={"compiled": "fetch"}, gates=("bench", "other"), options={"task": "null"}),
            },
        )
    },
    machines=(Section(AVX2, {("tiny", "validate"): Made(C, D)}),),
)
TEXT = dump(LOCK)


def variant(lock, **jobs):
    old = lock.variants["tiny"]
    return {"tiny": replace(old, jobs={**old.jobs, **jobs})}


def said(locked, here, scope=None):
    return [str(difference) for difference in differences(locked, here, scope or Scope())]


# -- its text ------------------------------------------------------------------------------------------------


def test_a_lock_is_read_back_as_it_was_written():
    assert parse(Text("r.lock", TEXT)) == LOCK


def test_a_lock_begins_with_what_it_is_and_each_fact_has_a_line():
    assert TEXT.startswith("# ")
    assert "edit" in TEXT.split("lock: 1")[0]
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
made = st.builds(Made, digests, st.none() | digests)
jobs = st.builds(
    LockedJob,
    needs=rows,
    reads=rows,
    gates=st.lists(names, max_size=2).map(tuple),
    options=rows,
    made=st.none() | made,
)
machines = st.lists(
    st.tuples(st.dictionaries(names, texts, min_size=1, max_size=2), st.tuples(names, names), made), max_size=3
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
    )
)
def test_whatever_a_lock_says_comes_back(lock):
    assert parse(Text("r.lock", dump(lock))) == lock


# -- a text that is no lock ----------------------------------------------------------------------------------


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
        ("lock: 1", "lock: 2", "this lock has the form 2"),
        ("lock: 1\n", "", "this is no lock"),
        (TEXT, "- a\n...\n", "this is no lock"),
        (TEXT, "...\n", "not valid YAML"),
        ("tools:\n", "tools: &a\n", None),
        ("variants:\n", "variants: []\nx:\n", "no lock has a field 'x' here"),
        ("- facts:\n    cpu.isa: avx2\n", "- facts: {}\n", "without the facts that head it"),
    ],
)
def test_a_broken_lock_is_refused_with_its_place(old, new, message):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if message is None:
        assert parse(Text("r.lock", text)) == LOCK
        return
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


def test_a_lock_lies_beside_its_recipe_and_belongs_to_one(tmp_path):
    recipe = tmp_path / "a.b.yaml"
    assert file.path_of(recipe) == tmp_path / "a.b.lock"
    (tmp_path / "a.b.yml").write_text("")
    with pytest.raises(UsageError, match="would share the lock"):
        file.path_of(recipe)
    with pytest.raises(UsageError, match="called like a lock"):
        file.path_of(tmp_path / "a.lock")


def test_a_lock_is_written_only_where_it_says_something_new(tmp_path):
    path = tmp_path / "r.lock"
    assert file.write(path, LOCK)
    before = path.stat()
    assert not file.write(path, LOCK)
    assert path.stat() == before
    assert file.find(path) == LOCK
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]


def test_a_folder_in_the_way_is_one_clear_error(tmp_path):
    (tmp_path / "r.lock").mkdir()
    with pytest.raises(LockError, match="cannot be read: Is a directory"):
        file.find(tmp_path / "r.lock")
    with pytest.raises(LockError, match="cannot be written"):
        file.write(tmp_path / "r.lock", LOCK)
    assert [each.name for each in tmp_path.iterdir()] == ["r.lock"]


# -- what differs from it ------------------------------------------------------------------------------------


def test_nothing_differs_from_itself():
    assert said(LOCK, LOCK) == []
    refuse(LOCK, LOCK, Scope(), lock="r.lock", recipe="r.yaml")


@pytest.mark.parametrize(
    ("here", "line"),
    [
        (replace(LOCK, sources={**LOCK.sources, "model": C}), f"model: locked {A}, here {C}"),
        (replace(LOCK, sources={**LOCK.sources, "new": C}), f"new: not locked, here {C}"),
        (replace(LOCK, tools={**LOCK.tools, "onnx": "1.24.0"}), "tools.onnx: locked 1.23.2, here 1.24.0"),
        (replace(LOCK, tools={"numpy": "2.10"}), "tools.onnx: locked 1.23.2, not here"),
        (replace(LOCK, steps={**LOCK.steps, "fetch": D}), f"code of fetch: locked {A}, here {D}"),
        (replace(LOCK, variants={}), "variant tiny: locked, not here"),
        (replace(LOCK, variants={**LOCK.variants, "big": LOCK.variants["tiny"]}), "variant big: not locked, here"),
        (replace(LOCK, variants=variant(LOCK, fuse=LockedJob())), "job fuse of tiny: not locked, here"),
        (
            replace(LOCK, variants=variant(LOCK, fetch=LockedJob(reads={"source": "model"}, made=Made(A, B)))),
            "options.weights of fetch in tiny: locked safetensors, not here",
        ),
        (
            replace(LOCK, variants=variant(LOCK, validate=replace(LOCK.variants["tiny"].jobs["validate"], gates=()))),
            "gates of validate in tiny: locked bench, other, not here",
        ),
        (
            replace(
                LOCK,
                variants=variant(
                    LOCK, validate=replace(LOCK.variants["tiny"].jobs["validate"], needs={"compiled": "x"})
                ),
            ),
            "needs.compiled of validate in tiny: locked fetch, here x",
        ),
        (
            replace(
                LOCK,
                variants={
                    "tiny": replace(LOCK.variants["tiny"], recipe={"name": "tiny", "validate.cosine.at_least": "0.4"})
                },
            ),
            "recipe.validate.cosine.at_least of tiny: locked 0.5, here 0.4",
        ),
        (
            replace(LOCK, variants={"tiny": replace(LOCK.variants["tiny"], recipe={"name": "tiny"})}),
            "recipe.validate.cosine.at_least of tiny: locked 0.5, here the default",
        ),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_every_row_that_differs_is_named_with_both_values(here, line):
    assert said(LOCK, here) == [line]
    with pytest.raises(LockError) as caught:
        refuse(LOCK, here, Scope(), lock="r.lock", recipe="r.yaml")
    assert line in caught.value.facts
    assert "1 row differs" in caught.value.what
    assert "recipe lock r.yaml" in caught.value.hint
    assert caught.value.exit is Exit.USAGE


def test_keys_and_artifacts_are_compared_where_everything_else_is_equal():
    here = replace(LOCK, variants=variant(LOCK, fetch=replace(LOCK.variants["tiny"].jobs["fetch"], made=Made(A, C))))
    assert said(LOCK, here) == [f"artifact of fetch in tiny: locked {B}, here {C}"]
    here = replace(LOCK, variants=variant(LOCK, fetch=replace(LOCK.variants["tiny"].jobs["fetch"], made=Made(C, C))))
    assert said(LOCK, here) == [f"key of fetch in tiny: locked {A}, here {C}"]
    other = replace(here, tools={**LOCK.tools, "onnx": "2"})
    assert said(LOCK, other) == ["tools.onnx: locked 1.23.2, here 2"]


def test_what_is_not_known_on_one_side_is_no_difference():
    here = replace(LOCK, variants=variant(LOCK, fetch=replace(LOCK.variants["tiny"].jobs["fetch"], made=None)))
    assert said(LOCK, here) == said(here, LOCK) == []


def test_a_section_is_compared_only_where_its_facts_hold():
    there = replace(LOCK, machines=(Section(AVX512, {("tiny", "validate"): Made(A, A)}),))
    here = replace(LOCK, machines=(Section(AVX2, {("tiny", "validate"): Made(C, A)}),))
    assert said(there, here) == []
    assert said(LOCK, here) == [f"artifact of validate in tiny: locked {D}, here {A}"]


def test_what_the_command_line_leaves_out_is_no_difference():
    partly = Scope(whole=False)
    only_fetch = {"tiny": replace(LOCK.variants["tiny"], jobs={"fetch": LOCK.variants["tiny"].jobs["fetch"]})}
    here = Lock(sources={"model": A}, tools={}, steps={"fetch": A}, variants=only_fetch)
    assert said(LOCK, here, partly) == []
    assert len(said(LOCK, here)) == 6
    assert said(LOCK, replace(here, steps={"fetch": B}), partly) == [f"code of fetch: locked {A}, here {B}"]


def test_tools_of_jobs_that_wait_for_other_hardware_are_no_difference():
    here = replace(LOCK, tools={"numpy": "2.10"})
    assert said(LOCK, here, Scope(elsewhere=frozenset({"onnx"}))) == []


def test_an_environment_variable_that_a_key_has_is_compared_and_kept_for_the_machine_that_sets_it():
    set_ = replace(LOCK, variables={"NVIDIA_TF32_OVERRIDE": "0"})
    assert parse(Text("r.lock", dump(set_))) == set_
    assert said(LOCK, set_) == ["env.NVIDIA_TF32_OVERRIDE: not locked, here 0"]
    assert said(set_, LOCK) == ["env.NVIDIA_TF32_OVERRIDE: locked 0, not here"]
    elsewhere = frozenset({"NVIDIA_TF32_OVERRIDE"})
    assert said(set_, LOCK, Scope(elsewhere=elsewhere)) == []
    assert merged(set_, LOCK, elsewhere=elsewhere) == set_
    assert merged(set_, LOCK, elsewhere=()) == LOCK


def test_very_many_differences_are_counted():
    here = replace(LOCK, tools={f"t{n}": "1" for n in range(200)})
    with pytest.raises(LockError) as caught:
        refuse(LOCK, here, Scope(), lock="r.lock", recipe="r.yaml")
    assert "202 rows differ" in caught.value.what
    assert caught.value.facts[-1] == "and 142 more"


# -- a second machine ----------------------------------------------------------------------------------------


def on(machine, **changes):
    return replace(LOCK, machines=(Section(machine, {("tiny", "validate"): Made(A, A)}),), **changes)


def test_a_second_kind_of_machine_adds_its_section_and_keeps_the_other():
    both = merged(LOCK, on(AVX512), elsewhere=())
    assert both.machines == (*LOCK.machines, *on(AVX512).machines)
    assert merged(on(AVX512), LOCK, elsewhere=()) == both
    assert merged(both, LOCK, elsewhere=()) == both


def test_the_same_kind_of_machine_replaces_its_section():
    assert merged(LOCK, on(AVX2), elsewhere=()) == on(AVX2)


@pytest.mark.parametrize(
    "changes",
    [
        {"sources": {**LOCK.sources, "model": C}},
        {"tools": {**LOCK.tools, "onnx": "2"}},
        {"steps": {**LOCK.steps, "validate": C}},
        {"variants": variant(LOCK, validate=LockedJob())},
        {"variants": variant(LOCK, more=LockedJob())},
        {"variants": variant(LOCK, fetch=replace(LOCK.variants["tiny"].jobs["fetch"], made=Made(A, C)))},
        {"variants": {}},
    ],
    ids=["source", "tool", "code", "wiring", "job", "artifact", "variant"],
)
def test_a_section_of_another_machine_goes_when_its_keys_are_no_longer_true(changes):
    new = on(AVX512, **changes)
    assert merged(LOCK, new, elsewhere=()) == new


def test_a_new_bound_leaves_the_sections_of_other_machines():
    new = on(AVX512, variants={"tiny": replace(LOCK.variants["tiny"], recipe={"name": "tiny"})})
    assert len(merged(LOCK, new, elsewhere=()).machines) == 2


def test_a_new_variant_leaves_the_sections_of_the_others():
    new = on(AVX512, variants={**LOCK.variants, "big": LOCK.variants["tiny"]}, steps={**LOCK.steps, "more": A})
    assert len(merged(LOCK, new, elsewhere=()).machines) == 2


def test_tools_of_jobs_that_wait_here_keep_their_locked_version():
    new = replace(LOCK, tools={"numpy": "2.10"})
    assert merged(LOCK, new, elsewhere={"onnx", "tensorrt"}).tools == LOCK.tools
    assert merged(LOCK, new, elsewhere=()).tools == new.tools


def test_a_lock_tells_the_keys_of_this_machine_and_of_all_others():
    here = LockedVariant({}, {"export": LockedJob(made=Made("a" * 32))})
    other = ({"cpu.isa": "avx2"}, ("r", "validate"), Made("b" * 32))
    assert Lock({}, {}, {}, {"r": here}, sections([other])).made_keys() == {"a" * 32, "b" * 32}
