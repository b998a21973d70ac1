"""Models on real file systems: whatever changes there, and however, the next build delivers what lies there.

Needs root, for mounts of its own. `--whole` tries all file systems; otherwise one of each sort is tried.
"""

import mmap
import os
import shutil
import subprocess
import time
from contextlib import contextmanager

import fetched_builds as builds
import pytest
from fire import mounts

from engine.store.stat_cache import stat_row
from engine.system import file_systems

pytestmark = pytest.mark.slow

WRITABLE = (
    "ext4",
    pytest.param("xfs", marks=pytest.mark.whole),
    "tmpfs",
    pytest.param("ramfs", marks=pytest.mark.whole),
)
BELIEVED = {"ext4", "xfs", "squashfs"}
_STAMP = 1_600_000_000


@pytest.fixture(autouse=True)
def separate_mounts():
    with mounts.own_mounts():
        yield


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project on a disk that is believed; the model of its recipe lies on the disk of the test."""
    if not file_systems.tells_changes(tmp_path):
        pytest.skip(f"the temporary folder is on {file_systems.kind_of(tmp_path)}, which is not believed")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def disk(request, tmp_path):
    """An empty file system of the kind that the test names."""
    with mounted(request.param, tmp_path) as place:
        yield request.param, place
        table_changed()


@contextmanager
def mounted(kind, folder):
    if kind not in {"tmpfs", "ramfs"}:
        loop = mounts.new_disk(kind, folder)
        yield loop.place
        loop.remove()
        return
    place = folder / kind
    place.mkdir()
    subprocess.run(["mount", "-t", kind, kind, str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def table_changed():
    """Let the program read the table of mounts again, as a new process does."""
    file_systems._by_point.clear()
    file_systems._by_device.clear()


def build(*words):
    table_changed()
    return builds.build("r.yaml", *words)


def is_fresh(model, *words):
    """Build, and check that the build delivers the weights that lie there."""
    done = build(*words)
    assert done.code == 0, done.events
    assert done.weights == (model / "model.safetensors").read_bytes()
    return done


def settle(kind, model):
    """Build until nothing changes; a snapshot answers where, and only where, the file system is believed."""
    for _ in range(3):
        time.sleep(0.05)
        answered = is_fresh(model).answered
    assert answered is (kind in BELIEVED)


def model_on(place, project):
    builds.model(place / "model", 1)
    builds.recipe(project / "r.yaml", str(place / "model"))
    os.environ["RECIPE_ALLOW_PATHS"] = str(place)
    return place / "model"


@pytest.fixture(autouse=True)
def allowed(monkeypatch):
    monkeypatch.setenv("RECIPE_ALLOW_PATHS", "")


def last_byte(content, value):
    return content[:-1] + bytes([value])


@pytest.mark.parametrize("disk", WRITABLE, indirect=True)
def test_every_write_through_a_mapping_that_stays_open_is_delivered(disk, project):
    kind, place = disk
    model = model_on(place, project)
    settle(kind, model)
    with (model / "model.safetensors").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        for value in (1, 2, 3):
            mapping[-1] = value  # the same page each time
            done = is_fresh(model)
            assert not done.answered
            assert done.states == ["built"]
            time.sleep(0.05)
            is_fresh(model)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.whole("test_every_write_through_a_mapping_that_stays_open_is_delivered")
def test_a_disk_whose_image_was_written_to_between_two_mounts_is_read_again(kind, project, tmp_path):
    loop = mounts.new_disk(kind, tmp_path)
    model = model_on(loop.place, project)
    marker = (model / "model.safetensors").read_bytes()
    settle(kind, model)
    before = stat_row(model / "model.safetensors")
    loop.remove()
    image = loop.image.read_bytes()
    assert image.count(marker) == 1
    loop.image.write_bytes(image.replace(marker, last_byte(marker, 9)))
    loop.mount()
    assert stat_row(model / "model.safetensors") == before, "the test is about equal stat rows"
    done = is_fresh(model)
    assert done.weights[-1] == 9
    assert not done.answered
    settle(kind, model)
    loop.remove()


@pytest.mark.parametrize("kind", ["squashfs", "erofs", "iso9660"])
@pytest.mark.whole("test_every_write_through_a_mapping_that_stays_open_is_delivered")
def test_an_image_that_another_of_equal_time_stamps_replaces_is_read_again(kind, project, tmp_path):
    images = []
    stamp = ("-T", str(_STAMP)) if kind == "erofs" else ()
    for number in (1, 2):
        content = tmp_path / f"content{number}"
        builds.model(content / "model", number)
        for path in (*content.rglob("*"), content):
            os.utime(path, (_STAMP, _STAMP))
        images.append(mounts.image_of(kind, content, tmp_path / f"image{number}", *stamp))
    image = tmp_path / "image"
    shutil.copy(images[0], image)
    loop = mounts.LoopDisk(kind, image, tmp_path / "place")
    builds.recipe(project / "r.yaml", str(loop.place / "model"))
    os.environ["RECIPE_ALLOW_PATHS"] = str(loop.place)
    settle(kind, loop.place / "model")
    before = stat_row(loop.place / "model" / "model.safetensors")
    loop.remove()
    shutil.copy(images[1], image)
    loop.mount()
    assert stat_row(loop.place / "model" / "model.safetensors") == before, "the test is about equal stat rows"
    assert is_fresh(loop.place / "model").states == ["built"]
    loop.remove()


@pytest.mark.whole
@pytest.mark.parametrize("disk", ["tmpfs"], indirect=True)
def test_a_package_on_a_file_system_that_is_not_believed_is_read_in_each_build(disk, project):
    """The package, the store and the recipe lie there, too: no snapshot is kept, and each edit is seen."""
    kind, place = disk
    builds.model(place / "model", 1)
    (place / "pyproject.toml").touch()
    builds.recipe(place / "r.yaml", "model")
    os.chdir(place)
    settle(kind, place / "model")
    assert list((place / "cache" / "snapshots").iterdir()) == []
    stored = next((place / "cache" / "artifacts").glob("*/model.safetensors"))
    stored.chmod(0o644)
    with stored.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[-1] = 9
    assert is_fresh(place / "model").states in (["built"], ["cached"])
    os.chdir(project)


@pytest.mark.whole
@pytest.mark.parametrize("mounted_over", ["", "model.safetensors"], ids=["a folder", "a file"])
def test_a_mount_over_the_model_is_noticed(mounted_over, project, tmp_path):
    model = model_on(tmp_path, project)
    settle("ext4", model)
    copy = builds.copied(model, tmp_path / "copy")
    builds.weights(copy / "model.safetensors", 2)
    subprocess.run(["mount", "--bind", str(copy / mounted_over), str(model / mounted_over)], check=True)
    assert not is_fresh(model).answered
    subprocess.run(["umount", str(model / mounted_over)], check=True)
    assert not is_fresh(model).answered


@pytest.mark.whole
@pytest.mark.parametrize("option", ["--paranoid", "cache verify --sources"])
def test_everything_is_read_once_where_no_time_stamp_tells(option, project, tmp_path):
    """The disk's content changes under a mounted file system: no stat row can tell of that."""
    loop = mounts.new_disk("ext4", tmp_path)
    model = model_on(loop.place, project)
    marker = (model / "model.safetensors").read_bytes()
    settle("ext4", model)
    os.sync()
    device = subprocess.run(["findmnt", "-no", "SOURCE", str(loop.place)], capture_output=True, text=True, check=True)
    _write_below(device.stdout.strip(), marker, last_byte(marker, 7))
    with (model / "model.safetensors").open("rb") as file:  # out of the page cache
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    assert (model / "model.safetensors").read_bytes() != marker
    assert build().answered, "the test is about what no stat row tells"
    if option == "--paranoid":
        done = is_fresh(model, "--paranoid")
        assert done.states == ["built"]
        assert any("model.safetensors" in notice for notice in done.notices), done.events
    else:
        table_changed()
        arguments = builds.parse(["cache", "verify", "--sources"])
        assert arguments.run(arguments) == 1
    assert is_fresh(model).states in (["built"], ["cached"])
    loop.remove()


def _write_below(device, before, after):
    """Write to a disk under its file system."""
    handle = os.open(device, os.O_RDWR)
    try:
        content = os.pread(handle, 64 << 20, 0)
        assert content.count(before) == 1
        os.pwrite(handle, after, content.index(before))
        os.fsync(handle)
    finally:
        os.close(handle)
