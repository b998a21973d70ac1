"""A store knows what it has pushed where."""

from pathlib import Path

from engine import digest
from engine.store.pushed import Pushed

ONE, OTHER = digest.of_bytes(b"1"), digest.of_bytes(b"2")
REMOTE = "s3://bucket/a"


def pushed_in(folder):
    return Pushed(folder, Path.write_bytes)


def test_each_remote_has_its_own_list(tmp_path):
    pushed_in(tmp_path).add([ONE], REMOTE)
    assert pushed_in(tmp_path).has(ONE, REMOTE)
    assert not pushed_in(tmp_path).has(OTHER, REMOTE)
    assert not pushed_in(tmp_path).has(ONE, "s3://bucket/b")


def test_what_another_process_adds_is_seen(tmp_path):
    pushed = pushed_in(tmp_path)
    assert not pushed.has(ONE, REMOTE)
    pushed_in(tmp_path).add([OTHER, ONE], REMOTE)
    assert pushed.has(ONE, REMOTE)


def test_a_torn_line_costs_its_record_only(tmp_path):
    pushed_in(tmp_path).add([ONE], REMOTE)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    pushed = pushed_in(tmp_path)
    pushed.add([OTHER], REMOTE)
    assert pushed.has(OTHER, REMOTE)
    assert not pushed.has(ONE, REMOTE)


def test_collected_records_are_forgotten(tmp_path):
    pushed = pushed_in(tmp_path)
    pushed.add([ONE, OTHER], REMOTE)
    pushed.forget_all_but({OTHER})
    assert pushed.has(OTHER, REMOTE)
    assert not pushed.has(ONE, REMOTE)
