"""A store knows what it has pushed where."""

from engine import digest
from engine.store.pushed import Pushed

ONE, OTHER = digest.of_bytes(b"1"), digest.of_bytes(b"2")
REMOTE = "s3://bucket/a"


def test_each_remote_has_its_own_list(tmp_path):
    Pushed(tmp_path).add([ONE], REMOTE)
    assert Pushed(tmp_path).has(ONE, REMOTE)
    assert not Pushed(tmp_path).has(OTHER, REMOTE)
    assert not Pushed(tmp_path).has(ONE, "s3://bucket/b")


def test_what_another_process_adds_is_seen(tmp_path):
    pushed = Pushed(tmp_path)
    assert not pushed.has(ONE, REMOTE)
    Pushed(tmp_path).add([OTHER, ONE], REMOTE)
    assert pushed.has(ONE, REMOTE)


def test_a_torn_line_costs_its_record_only(tmp_path):
    Pushed(tmp_path).add([ONE], REMOTE)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    pushed = Pushed(tmp_path)
    pushed.add([OTHER], REMOTE)
    assert pushed.has(OTHER, REMOTE)
    assert not pushed.has(ONE, REMOTE)


def test_collected_records_are_forgotten(tmp_path):
    folder, staging = tmp_path / "pushed", tmp_path / "staging"
    folder.mkdir()
    staging.mkdir()
    pushed = Pushed(folder)
    pushed.add([ONE, OTHER], REMOTE)
    pushed.forget_all_but({OTHER}, staging)
    assert pushed.has(OTHER, REMOTE)
    assert not pushed.has(ONE, REMOTE)
