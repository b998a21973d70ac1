"""Overlay file systems, as containers have them: believed only if an experiment shows that their upper layer tells.

Needs root, for mounts of its own, and a kernel that numbers its mounts (Linux 6.8).
"""

import mmap
import subprocess
import tempfile
import time

import fetched_builds as builds
import pytest
from fire import mounts

from engine.system import file_systems
from engine.system.file_systems import tells_changes

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def separate_mounts(tmp_path):
    if file_systems.unique_number("/") is None:
        pytest.skip("this kernel has no unique numbers of mounts (Linux 6.8 has)")
    if not tells_changes(tmp_path):
        pytest.skip(f"the temporary folder is on {file_systems.kind_of(tmp_path)}, which is not believed")
    with mounts.own_mounts():
        yield


@pytest.fixture
def overlay(tmp_path, monkeypatch):
    """Mount an overlay of a lower and an upper layer, with the temporary folder on it; return its folder."""
    mounted = []

    def of(lower, upper):
        place = tmp_path / "merged"
        place.mkdir(exist_ok=True)
        for name in ("files", "work"):
            (upper / name).mkdir(exist_ok=True)
        options = f"lowerdir={lower},upperdir={upper}/files,workdir={upper}/work"
        subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", str(place)], check=True)
        mounted.append(place)
        (place / "tmp").mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
        forget()
        return place

    yield of
    for place in mounted:
        subprocess.run(["umount", str(place)], check=False, capture_output=True)
    forget()


def forget():
    """Let the program read the table of mounts again, and repeat the experiment, as a new process does."""
    file_systems._by_point.clear()
    file_systems._by_device.clear()
    file_systems._tried.clear()


def folder(tmp_path, name):
    (tmp_path / name).mkdir()
    return tmp_path / name


def project_on(place, monkeypatch):
    """A project whose recipe, store and model lie on the overlay."""
    (place / "pyproject.toml").touch()
    if not (place / "model").exists():
        builds.model(place / "model", 1)
    builds.recipe(place / "r.yaml", "model")
    monkeypatch.chdir(place)
    return place / "model" / "model.safetensors"


def build():
    forget()
    return builds.build("r.yaml")


def settle():
    for _ in range(3):
        time.sleep(0.05)
        done = build()
    return done.answered


def test_an_upper_layer_that_tells_is_believed_and_every_mapped_write_is_delivered(overlay, tmp_path, monkeypatch):
    place = overlay(folder(tmp_path, "lower"), folder(tmp_path, "upper"))
    weights = project_on(place, monkeypatch)
    assert settle(), "no snapshot answered"
    with weights.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        for value in (1, 2, 3):
            mapping[-1] = value  # the same page each time
            done = build()
            assert not done.answered
            assert done.weights == weights.read_bytes()
            time.sleep(0.05)
            build()
    monkeypatch.chdir(tmp_path)


def test_an_upper_layer_in_memory_is_not_believed(overlay, tmp_path, monkeypatch):
    upper = folder(tmp_path, "upper")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(upper)], check=True)
    project_on(overlay(folder(tmp_path, "lower"), upper), monkeypatch)
    assert not settle()
    monkeypatch.chdir(tmp_path)


def test_an_overlay_without_a_folder_for_the_experiment_is_not_believed(overlay, tmp_path, monkeypatch):
    place = overlay(folder(tmp_path, "lower"), folder(tmp_path, "upper"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    forget()
    assert not tells_changes(place)


def test_a_lower_layer_on_another_file_system_is_not_believed(overlay, tmp_path, monkeypatch):
    content = tmp_path / "content"
    builds.model(content / "model", 1)
    image = mounts.image_of("squashfs", content, tmp_path / "image")
    loop = mounts.LoopDisk("squashfs", image, tmp_path / "place")
    weights = project_on(overlay(loop.place, folder(tmp_path, "upper")), monkeypatch)
    assert not tells_changes(weights)
    assert not settle()
    monkeypatch.chdir(tmp_path)
    subprocess.run(["umount", str(tmp_path / "merged")], check=True)
    loop.remove()


def test_after_another_mount_every_file_is_read_again(overlay, tmp_path, monkeypatch):
    lower, upper = folder(tmp_path, "lower"), folder(tmp_path, "upper")
    project_on(overlay(lower, upper), monkeypatch)
    assert settle(), "no snapshot answered"
    monkeypatch.chdir(tmp_path)
    subprocess.run(["umount", str(tmp_path / "merged")], check=True)
    monkeypatch.chdir(overlay(lower, upper))
    assert not build().answered
    assert settle()
    monkeypatch.chdir(tmp_path)
