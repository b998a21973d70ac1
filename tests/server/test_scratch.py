"""Scratch folders of servers: the folders of dead servers are removed."""

from engine.server import scratch


def test_a_folder_of_a_living_server_is_left_alone_and_one_of_a_dead_one_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch.tempfile, "gettempdir", lambda: str(tmp_path))
    alive, dead = scratch.new(), scratch.new()
    ran = tmp_path / "ran"
    dead.write_plan(
        {"afterwards": [["touch", str(ran)]], "shared_memory": f"{dead.name}_", "folders": [str(dead.folder)]}
    )
    dead.lock.release()
    assert scratch.sweep() == 1
    assert alive.folder.is_dir()
    assert not dead.folder.exists()
    assert ran.exists()
    alive.drop()
