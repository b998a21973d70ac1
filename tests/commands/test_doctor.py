"""`recipe doctor`: what it says of the file systems in use, and the bundle that it writes."""

import tarfile

import pytest

from engine import commands
from engine.commands import doctor
from engine.errors import Exit
from engine.store import file_systems


@pytest.fixture
def mounts(monkeypatch):
    """Let the program's own table of mounts be what a test writes into it."""
    mounts = {"/": file_systems.Mount("ext4", 1)}
    monkeypatch.setattr(file_systems, "_mounts", lambda: mounts)
    monkeypatch.setattr(file_systems, "_by_device", {})
    return mounts


def test_the_doctor_says_that_unchanged_files_are_recognized(mounts):
    assert doctor._file_systems() == "recognized by their time stamps, without reading them"


def test_the_doctor_names_each_folder_that_every_build_reads(mounts, tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECIPE_CACHE", raising=False)
    monkeypatch.setattr(file_systems, "_device", lambda path: hash(str(path)))
    mounts[str(tmp_path.resolve())] = file_systems.Mount("tmpfs", 2)
    lines = doctor._file_systems().splitlines()
    assert lines[0].startswith("read in each build")
    assert [line.strip() for line in lines[1:3]] == ["this folder (tmpfs)", "the store (tmpfs)"]
    assert lines[-1].strip().startswith("hint: ")


def test_the_doctor_packs_the_results_of_the_store_in_use(tmp_path, monkeypatch, capsys):
    (tmp_path / "store" / "logs").mkdir(parents=True)
    (tmp_path / "store" / "logs" / "a.log").write_text("a line")
    monkeypatch.setenv("RECIPE_CACHE", str(tmp_path / "store"))
    arguments = commands.parse(["doctor", "--bundle", str(tmp_path / "results.tar.gz")])
    assert doctor.run(arguments) == Exit.OK
    assert "2 files" in capsys.readouterr().out
    with tarfile.open(tmp_path / "results.tar.gz") as archive:
        assert "recipe-results/logs/a.log" in archive.getnames()
