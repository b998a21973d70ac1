"""Which row of a key covers a read, or which line of the allow-list, and what the hint for a gap is."""

from pathlib import Path

import pytest

import engine
from engine.builder.trace.coverage import Rows, examine
from engine.builder.trace.gaps import refuse_uncovered_code
from engine.builder.trace.reads import Kind, Read, decode, encode
from engine.errors import StepError
from engine.facts import Known

ROOT = "/work/stamps/stamp_package/"
STEP = f"{ROOT}step.py"
ROWS = Rows(
    package="stamp_package",
    root=ROOT,
    inputs={"model": "/store/artifacts/abc"},
    sources={"words": ("/data/words.txt",)},
    code=(STEP, f"{ROOT}list.txt"),
    tools=("numpy",),
    facts=lambda: {"sky": Known("blue", ("/etc/sky", "/usr/bin/sky")), "cpu.count": Known("2")},
)


def read(kind, name, *, by="stamp_package.step", at=f"{STEP}:7"):
    return Read(Kind(kind), name, at, by)


def trace(*items, rows=ROWS):
    return examine(items, rows)


@pytest.mark.parametrize(
    ("item", "cover", "name"),
    [
        (read("file", "/store/artifacts/abc/model.onnx"), "inputs.model", "model.onnx"),
        (read("folder", "/store/artifacts/abc"), "inputs.model", "."),
        (read("file", "/data/words.txt"), "inputs.words", "words.txt"),
        (read("file", STEP), "code", "stamp_package/step.py"),
        (read("file", f"{ROOT}list.txt"), "code (data)", "stamp_package/list.txt"),
        (read("package", "numpy"), "tools.numpy", "numpy"),
        (read("file", "/etc/sky"), "facts.sky", "/etc/sky"),
        (read("program", "/usr/bin/sky"), "facts.sky", "/usr/bin/sky"),
        (read("machine", "the number of CPUs"), "facts.cpu.count", "the number of CPUs"),
        (read("package", "metadata of numpy"), "tools.numpy", "numpy"),
        (read("file", "/dev/null"), "allowed", "/dev/null"),
        (read("status", "/data"), "inputs.words", "words.txt"),
        (read("package", "import path"), "allowed", "import path"),
        (read("file", "/usr/lib/x86_64-linux-gnu/libc.so.6", by="", at=""), "allowed", None),
    ],
)
def test_a_row_or_a_line_of_the_allow_list_covers_a_read(item, cover, name):
    [group] = trace(item).groups
    assert group.cover == cover
    assert name is None or group.names == (name,)
    assert bool(group.reason) == (cover == "allowed")


def test_an_input_and_a_source_cover_what_a_link_leads_to(tmp_path):
    (tmp_path / "words.txt").write_text("")
    links = {name: tmp_path / name for name in ("a", "b", "c")}
    links["a"].symlink_to("/store/artifacts/one/file")
    links["b"].symlink_to("words.txt")
    links["c"].symlink_to("/store/artifacts/two/file")
    rows = Rows("p", inputs={"model": "/store/artifacts/one"}, sources={"words": (str(links["b"]),)})
    traced = trace(*(read("file", str(each)) for each in (*links.values(), tmp_path / "words.txt")), rows=rows)
    assert {group.cover: group.names for group in traced.groups} == {
        "inputs.model": ("file",), "inputs.words": ("b", "words.txt"),
    }  # fmt: skip
    assert [gap.name for gap in traced.gaps] == [str(links["c"])]


@pytest.mark.parametrize(
    ("item", "name", "hint"),
    [
        (read("file", f"{ROOT}tables/a.csv"), "stamp_package/tables/a.csv", 'in step.py: data = ("tables/a.csv",)'),
        (read("folder", f"{ROOT}tables"), "stamp_package/tables", 'in step.py: data = ("tables/",)'),
        (read("file", f"{ROOT}plugin.py"), "stamp_package/plugin.py", '"stamp_package.plugin" from the step\'s method'),
        (read("file", "/data/words.txt.bak"), "/data/words.txt.bak", "a field of the type Source"),
        (read("file", "/store/artifacts/abcd/x"), "/store/artifacts/abcd/x", "a field of the type Source"),
        (read("file", "/usr/lib/words"), "/usr/lib/words", "a field of the type Source"),
        (read("package", "pytest"), "pytest", 'tools = ("pytest",)'),
        (read("machine", "the host's name"), "the host's name", "an option of the step"),
        (read("program", "/bin/true"), "/bin/true", "declare a fact"),
        (read("network", "example.org:443"), "example.org:443", "a field of the type Source"),
    ],
)
def test_what_nothing_covers_is_a_gap_with_a_hint(item, name, hint):
    [gap] = trace(item).gaps
    assert (gap.kind, gap.name, gap.at) == (item.kind.value, name, "stamp_package/step.py:7")
    assert hint in gap.hint


def test_what_a_hub_sends_is_covered_by_the_commit_of_its_source():
    rows = Rows(package="engine", sources={"source": ()})
    assert trace(read("network", "huggingface.co:443", by="engine.steps.fetch"), rows=rows).gaps == ()


def test_a_file_of_this_program_or_of_the_package_of_the_step_that_no_row_has_fails_the_job():
    ours = str(Path(engine.__file__).parent)
    rows = Rows("stamp_package", root=ROOT, code=(STEP, f"{ours}/step.py"))
    items = [read("file", name) for name in (STEP, f"{ours}/step.py", f"{ours}/api.py", f"{ROOT}more.txt", "/etc/sky")]
    gaps = trace(*items, read("folder", ROOT), rows=rows).gaps
    assert [(gap.name, gap.fails) for gap in gaps] == [
        ("engine/api.py", True), ("stamp_package/more.txt", True), ("stamp_package/", True), ("/etc/sky", False),
    ]  # fmt: skip
    with pytest.raises(StepError, match="'stamp' uses code or data that its key does not cover") as caught:
        refuse_uncovered_code("stamp", gaps)
    assert [fact.partition(": ")[0] for fact in caught.value.facts] == [
        "stamp_package/step.py:7 uses engine/api.py", "stamp_package/step.py:7 uses stamp_package/more.txt",
        "stamp_package/step.py:7 uses stamp_package/",
    ]  # fmt: skip
    refuse_uncovered_code("stamp", gaps[3:])


def test_a_trace_is_bounded_and_says_what_it_leaves_out():
    many = trace(*(read("file", f"/data/{number}") for number in range(100)))
    assert len(many.gaps) == 40
    assert many.more_gaps == 60
    many = trace(*(read("file", f"/store/artifacts/abc/{number}") for number in range(100)))
    assert (len(many.groups[0].names), many.groups[0].more) == (40, 60)


def test_reads_are_the_same_after_writing_and_reading():
    items = (read("file", "/a"), read("program", "B", at="", by=""))
    assert decode(encode(items)) == items
    for junk in (b"", b"[]\n", b"junk", b'["fish", "a", "", ""]\n', b"7\n"):
        with pytest.raises(ValueError, match=r"."):
            decode(junk)
