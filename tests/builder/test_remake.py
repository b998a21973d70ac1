"""`recipe build --remake`: a stored job runs again, and its bytes are compared with the stored ones."""

import json
import os

import pytest
import small_builds
import toy

from engine import digest
from engine.builder import remake
from engine.builder.registry import steps
from engine.builder.remake import FileDifference, differences
from engine.errors import UsageError
from engine.events import Ended
from engine.report.json_lines import line
from engine.report.plain import lines
from engine.store import output


def build(project, *steps, **options):
    events = small_builds.build(project, small_builds.variant(project, *steps), **options)
    return {event.job: event for event in events if isinstance(event, Ended)}


def stored(project):
    """Return the content of every file of the store's artifacts and records."""
    root = project / "cache"
    return {
        name: (root / name).read_bytes()
        for name in digest.walk(root)
        if name.startswith(("artifacts/", "records/", "files/"))
    }


def test_equal_bytes_are_reproduced_and_the_store_stays(project):
    steps = (toy.Begin(), toy.Shout())
    build(project, *steps)
    before = stored(project)
    ended = build(project, *steps, remake=frozenset({"shout"}))
    assert {name: event.state for name, event in ended.items()} == {"begin": "cached", "shout": "reproduced"}
    assert json.loads(line(ended["shout"]))["state"] == "reproduced"
    assert lines(ended["shout"], many=False)[0].startswith("reproduced shout")
    assert stored(project) == before
    assert not (project / "build" / remake.FOLDER).exists()
    assert list((project / "cache" / "staging").glob("*/*/out")) == []


def test_all_makes_every_reproducible_step_again_and_the_others_not(project):
    steps = (toy.Drifting(), toy.Shout())
    build(project, *steps)
    ended = build(project, *steps, remake=frozenset({remake.ALL}))
    assert {name: event.state for name, event in ended.items()} == {"drifting": "cached", "shout": "reproduced"}


def test_other_bytes_fail_with_the_file_the_place_and_the_second_output_and_the_store_stays(project):
    build(project, toy.Clocked(), toy.Shout())
    before = stored(project)
    ended = build(project, toy.Clocked(), toy.Shout(), remake=frozenset({"clocked"}))
    assert ended["clocked"].state == "failed"
    assert int(ended["clocked"].error.exit) == 1
    facts = ended["clocked"].error.facts
    assert facts[0] == "clock.txt: 5 bytes stored, 5 bytes in the second run; the first different byte is byte 4"
    kept = project / "build" / "remade" / "r" / "clocked"
    assert facts[-1] == f"second output: {kept}"
    assert (kept / "clock.txt").read_text() == "run 1"
    assert stored(project) == before
    assert {name: event.state for name, event in build(project, toy.Clocked(), toy.Shout()).items()} == {
        "clocked": "cached",
        "shout": "cached",
    }
    again = build(project, toy.Clocked(), toy.Shout(), remake=frozenset({"clocked"}))
    assert again["clocked"].state == "failed"
    assert (kept / "clock.txt").read_text() == "run 2"


def test_a_job_that_is_not_stored_is_built_and_compared_with_nothing(project):
    assert build(project, toy.Clocked(), remake=frozenset({"clocked"}))["clocked"].state == "built"


def test_a_common_job_of_two_variants_is_made_again_once(project):
    variants = [small_builds.variant(project, toy.Begin(), toy.Shout(), name=name) for name in "ab"]
    small_builds.build(project, *variants)
    events = small_builds.build(project, *variants, remake=frozenset({remake.ALL}))
    states = sorted((event.job, event.state) for event in events if isinstance(event, Ended))
    assert states == [("begin", "cached"), ("begin", "reproduced"), ("shout", "cached"), ("shout", "reproduced")]


def test_a_step_that_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match="the step 'bench' says that its bytes differ"):
        remake.refuse_unreproducible(["bench"], steps())


def test_every_reproducible_step_is_accepted():
    names = [name for name, kind in steps().items() if kind.reproducible]
    assert len(names) > 5
    remake.refuse_unreproducible([*names, remake.ALL], steps())


def test_differences_name_every_file_and_the_first_byte(tmp_path):
    big = os.urandom(3 << 20)
    contents = [
        {"same": b"same", "grown": b"abc", "gone": b"x", "far": big, "sub/early": b"xbc"},
        {"same": b"same", "grown": b"abcd", "new": b"yy", "far": big[:-1] + bytes([big[-1] ^ 1]), "sub/early": b"abc"},
    ]
    folders = []
    for number, files in enumerate(contents):
        folders.append(tmp_path / str(number))
        for name, content in files.items():
            path = folders[-1] / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    rows = list(differences(folders[0], output.take(folders[0]), folders[1], output.take(folders[1])))
    assert rows == [
        FileDifference("far", 3 << 20, 3 << 20, (3 << 20) - 1),
        FileDifference("gone", 1, None),
        FileDifference("grown", 3, 4, 3),
        FileDifference("new", None, 2),
        FileDifference("sub/early", 3, 3, 0),
    ]
    assert str(rows[1]) == "gone: only the first run wrote it (1 bytes)"
