"""Which row of a key covers a read, or which line of the allow-list, and what the hint for a gap is."""

import sys
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.builder.trace import declaring
from engine.builder.trace.coverage import Rows, examine
from engine.builder.trace.reads import Kind, Read, Reads, decode, encode
from engine.errors import StepError
from engine.known import Known

ROOT = "/work/stamps/stamp_package/"
STEP = f"{ROOT}step.py"
NUMPY = str(Path(np.__file__).parent)
METADATA = str(distribution("numpy")._path)
ROWS = Rows(
    package="stamp_package",
    inputs={"model": "/store/artifacts/abc"},
    sources={"words": ("/data/words.txt",)},
    code=frozenset({STEP, f"{ROOT}list.txt"}),
    tools=("numpy",),
    facts=lambda: {"sky": Known("blue", ("/etc/sky", "/usr/bin/sky")), "cpu.count": Known("2")},
)


def read(kind, name, *, by="stamp_package.step", at=f"{STEP}:7"):
    return Read(Kind(kind), name, at, by)


def trace(*items, rows=ROWS):
    return examine([Reads(ROOT, items)], rows)


@pytest.mark.parametrize(
    ("item", "cover", "name"),
    [
        (read("file", "/store/artifacts/abc/model.onnx"), "inputs.model", "model.onnx"),
        (read("folder", "/store/artifacts/abc"), "inputs.model", "."),
        (read("file", "/data/words.txt"), "inputs.words", "words.txt"),
        (read("file", STEP), "code", "stamp_package/step.py"),
        (read("file", f"{ROOT}list.txt"), "code (data)", "stamp_package/list.txt"),
        (read("package", NUMPY), "tools.numpy", f"numpy {np.__version__}"),
        (read("file", "/etc/sky"), "facts.sky", "/etc/sky"),
        (read("program", "/usr/bin/sky"), "facts.sky", "/usr/bin/sky"),
        (read("machine", "the number of CPUs"), "facts.cpu.count", "the number of CPUs"),
        (read("package", METADATA), "tools.numpy", f"numpy {np.__version__}"),
        (read("file", "/dev/null"), "allowed", "/dev/null"),
        (read("status", "/data"), "inputs.words", "words.txt"),
        (read("package", sys.path[-1]), "allowed", "import path"),
        (read("file", "/usr/lib/x86_64-linux-gnu/libc.so.6", by="", at=""), "allowed", None),
    ],
)
def test_a_row_or_a_line_of_the_allow_list_covers_a_read(item, cover, name):
    [group] = trace(item).groups
    assert group.cover == cover
    assert name is None or group.names == (name,)
    assert bool(group.reason) == (cover == "allowed")


def test_what_is_kept_for_the_next_job_of_a_step_does_not_cover_the_inputs_of_another_job(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/store/artifacts/one/file")
    ours, theirs = (
        Rows(package="p", inputs={"model": f"/store/artifacts/{name}"}, tools=["numpy"]) for name in ("one", "two")
    )
    items = (read("file", "/store/artifacts/one/file"), read("file", str(link)))
    first, second, third = (trace(*items, rows=rows) for rows in (ours, theirs, ours))
    assert [group.cover for group in first.groups] == ["inputs.model"]
    assert not first.gaps
    assert len(second.gaps) == 2
    assert not second.groups
    assert third == first


def test_a_folder_of_the_import_path_may_be_written_with_two_dots(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "packages" / ".." / "tools")
    [group] = trace(read("package", str(tmp_path / "tools"))).groups
    assert (group.cover, group.names) == ("allowed", ("import path",))


@pytest.mark.parametrize(
    ("item", "name", "hint"),
    [
        (read("file", f"{ROOT}tables/a.csv"), "stamp_package/tables/a.csv", 'in step.py: data = ("tables/a.csv",)'),
        (read("folder", f"{ROOT}tables"), "stamp_package/tables", 'in step.py: data = ("tables/",)'),
        (read("file", f"{ROOT}plugin.py"), "stamp_package/plugin.py", '"stamp_package.plugin" from the step\'s method'),
        (read("file", "/data/words.txt.bak"), "/data/words.txt.bak", "a field of the type Source"),
        (read("file", "/store/artifacts/abcd/x"), "/store/artifacts/abcd/x", "a field of the type Source"),
        (read("file", "/usr/lib/words"), "/usr/lib/words", "a field of the type Source"),
        (read("package", str(Path(pytest.__file__).parent)), "pytest", 'tools = ("pytest",)'),
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
    rows = Rows(package="stamp_package", code=frozenset({STEP, f"{ours}/step.py"}))
    items = [read("file", name) for name in (STEP, f"{ours}/step.py", f"{ours}/api.py", f"{ROOT}more.txt", "/etc/sky")]
    gaps = trace(*items, read("folder", ROOT), rows=rows).gaps
    assert [(gap.name, gap.fails) for gap in gaps] == [
        ("engine/api.py", True), ("stamp_package/more.txt", True), ("stamp_package/", True), ("/etc/sky", False),
    ]  # fmt: skip
    with pytest.raises(StepError, match="'stamp' uses code or data that its key does not cover") as caught:
        declaring.refuse_uncovered_code("stamp", gaps)
    assert [fact.partition(": ")[0] for fact in caught.value.facts] == [
        "stamp_package/step.py:7 uses engine/api.py", "stamp_package/step.py:7 uses stamp_package/more.txt",
        "stamp_package/step.py:7 uses stamp_package/",
    ]  # fmt: skip
    declaring.refuse_uncovered_code("stamp", gaps[3:])


def test_a_trace_is_bounded_and_says_what_it_leaves_out():
    many = trace(*(read("file", f"/data/{number}") for number in range(100)))
    assert len(many.gaps) == 40
    assert many.more_gaps == 60
    many = trace(*(read("file", f"/store/artifacts/abc/{number}") for number in range(100)))
    assert (len(many.groups[0].names), many.groups[0].more) == (40, 60)


def test_reads_are_the_same_after_writing_and_reading():
    items = (read("file", "/a"), read("program", "B", at="", by=""))
    assert decode(encode(ROOT, items)) == Reads(ROOT, items)
    for junk in (b"", b"[]\n", b"junk", b'["/"]\n["fish", "a", "", ""]\n', b"7\n"):
        with pytest.raises(ValueError, match=r"."):
            decode(junk)
