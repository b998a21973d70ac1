"""`recipe doctor`: what it says of the file systems in use, and the bundle that it writes."""

import tarfile
from types import SimpleNamespace

import fake_nvidia
import pytest

from engine import commands
from engine.commands import doctor
from engine.errors import Exit
from engine.machine import tools
from engine.system import file_systems


@pytest.fixture
def mounts(monkeypatch):
    """Let the program's own table of mounts be what a test writes into it."""
    mounts = {"/": ("ext4", 1, "/")}
    monkeypatch.setattr(file_systems, "_mounts", lambda: mounts)
    monkeypatch.setattr(file_systems, "_by_device", {})
    return mounts


def test_the_doctor_names_each_folder_that_every_build_reads(mounts, tmp_path, monkeypatch):
    assert doctor._file_systems() == "recognized by their time stamps, without reading them"
    (tmp_path / "cache").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECIPE_CACHE", raising=False)
    monkeypatch.setattr(file_systems, "_device", lambda path: hash(str(path)))
    mounts[str(tmp_path.resolve())] = ("tmpfs", 2, str(tmp_path.resolve()))
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


def test_the_doctor_notes_a_library_that_is_newer_than_the_last_version_that_was_tried(monkeypatch, capsys):
    monkeypatch.setitem(tools.NEWEST, "transformers", "5.0.0")
    assert doctor.run(commands.parse(["doctor"])) == Exit.OK
    [note] = [line for line in capsys.readouterr().out.splitlines() if "newer than 5.0.0" in line]
    assert note.startswith("note: transformers 5.")


MACHINES = {
    "mig": ["gpu.driver 570.133.20", "gpu.name NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb (sm_80)"],
    "twins": ["gpu.driver 580.65.06", "gpu.name Tesla T4 (sm_75), Tesla T4 (sm_75)"],
    "vgpu": ["gpu.driver 550.144.03", "gpu.name GRID T4-8C (sm_75)"],
    "mig_without_slices": ["gpu.name none", "on which MIG is on, and CUDA shows no slice: `nvidia-smi mig -cgi`"],
    "hidden": ["gpu.name none", "this machine has Tesla T4, but CUDA shows no GPU: CUDA_VISIBLE_DEVICES may hide it"],
    "old_driver": ["gpu.name Tesla T4 (sm_75)", "the driver supports CUDA 12.4, and tensorrt is built for CUDA 13"],
}
"""Transcript of a machine (tests/support/nvidia_transcripts) -> what the doctor says there."""


def test_every_transcript_has_a_row():
    assert {path.stem for path in fake_nvidia.PLACE.glob("*.json")} == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_the_doctor_says_which_gpus_a_machine_has_and_why_one_cannot_be_used(name, monkeypatch, capsys):
    fake_nvidia.install(monkeypatch, name)
    if name == "old_driver":
        built_for = SimpleNamespace(metadata={"Name": "tensorrt"}, requires=["tensorrt_cu13==11.1.0.9"], version="11.1")
        monkeypatch.setattr(tools, "provider", lambda _: built_for)
        monkeypatch.setitem(tools._versions, "tensorrt", "11.1.0.9")
    try:
        assert doctor.run(commands.parse(["doctor"])) == Exit.OK
    finally:
        monkeypatch.undo()
        fake_nvidia.forget()
    output = " ".join(capsys.readouterr().out.split())
    for text in MACHINES[name]:
        assert text in output
    assert "an NVIDIA driver that shows a GPU" not in output
