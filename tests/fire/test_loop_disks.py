"""Real file systems on loop devices: full, without inodes, at a quota, and after a power cut.

With `--whole`: many sizes and moments, in some minutes. Otherwise one power cut. Needs root, for mounts.
"""

import json
import shutil
import signal
import subprocess
import time
from dataclasses import replace

import pytest
from fire.builders import Builders, children
from fire.mounts import new_disk, own_mounts
from fire.project import Ground

pytestmark = pytest.mark.slow

NO_RESERVE = {"ext4": ("-m", "0"), "xfs": ()}
"""Words for mkfs, so that no blocks are kept back for root."""
WITHIN_QUOTA = ("setpriv", "--bounding-set=-sys_resource")
"""Root, but held to quotas."""


@pytest.fixture(scope="module")
def away(field, tmp_path_factory):
    """The field, with builders that run among mounts of their own."""
    with own_mounts():
        builders = Builders(field.builders.project, tmp_path_factory.mktemp("away") / "said")
        yield replace(field, builders=builders)
        builders.close()


def refused_clearly(builder, *words):
    assert builder.code == 1, builder.stdout + builder.stderr
    text = json.dumps(builder.errors()) + builder.stderr
    assert "recipe itself" not in text, text
    assert any(word in text for word in words), text
    assert all(error["hint"] for error in builder.errors()), text


def goes_on(field, ground, committed, mark):
    """With room again nothing is corrupt, and what had been committed is not built again."""
    assert field.builders.verify(ground)["damaged"] == []
    assert field.builders.delivered(field.builders.build(ground)) == field.expected
    assert not committed & set(ground.work(since=mark))
    assert ground.leftovers() == []


class MovedLog(Ground):
    """A ground whose log of work lies elsewhere, so that a full disk does not stop the log."""

    @property
    def announcements(self):
        return self.folder.parent.parent / "told"


def fill(place, *, leave):
    """Fill a disk, but for some bytes."""
    status = subprocess.run(["stat", "-f", "-c", "%a %S", place], capture_output=True, text=True, check=True)
    blocks, size = map(int, status.stdout.split())
    length = max(blocks * size - leave, 4096)
    while subprocess.run(["fallocate", "-l", str(length), str(place / "ballast")], check=False).returncode:
        length -= 1 << 16  # the file system needs some blocks for itself
        assert length > 0


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_disk_that_is_full_in_any_phase(kind, away, tmp_path):
    disk = new_disk(kind, tmp_path, megabytes=48, make=NO_RESERVE[kind])
    refused = 0
    try:
        for leave in range(0, 7_000_000, 500_000):
            copied = away.template.copy(disk.place / "ground")
            ground = MovedLog(copied.folder)
            ground.announcements.mkdir(exist_ok=True)
            fill(disk.place, leave=leave)
            builder = away.builders.start((*ground.words, "-j2"), ground).wait()
            if builder.code:
                refused += 1
                refused_clearly(builder, "No space left", "full")
            else:
                assert away.builders.delivered(builder) == away.expected
            committed, mark = ground.committed(), len(ground.lines())
            (disk.place / "ballast").unlink()
            goes_on(away, ground, committed, mark)
            shutil.rmtree(ground.folder)
    finally:
        disk.remove()
    assert refused


@pytest.mark.whole
def test_a_disk_without_inodes_in_any_phase(away, tmp_path):
    for spare in range(0, 160, 8):
        disk = new_disk("ext4", tmp_path, megabytes=32, make=("-N", "768", *NO_RESERVE["ext4"]))
        try:
            ground = MovedLog(away.template.copy(disk.place / "ground").folder)
            ground.announcements.mkdir(exist_ok=True)
            ballast = disk.place / "ballast"
            ballast.mkdir()
            free = int(subprocess.run(["stat", "-f", "-c", "%d", disk.place], capture_output=True, check=True).stdout)
            for number in range(max(free - spare, 0)):
                (ballast / str(number)).touch()
            builder = away.builders.start((*ground.words, "-j2"), ground).wait()
            if builder.code:
                refused_clearly(builder, "No space left", "full")
            else:
                assert away.builders.delivered(builder) == away.expected
            committed, mark = ground.committed(), len(ground.lines())
            shutil.rmtree(ballast)
            goes_on(away, ground, committed, mark)
        finally:
            disk.remove()


@pytest.mark.whole
def test_a_quota_that_is_used_up(away, tmp_path):
    if shutil.which("setquota") is None:
        pytest.skip("a quota needs the program setquota, which is not installed")
    try:
        disk = new_disk(
            "ext4", tmp_path, megabytes=32, make=("-O", "quota", "-E", "quotatype=usrquota"), options="usrquota"
        )
    except AssertionError as refused:
        pytest.skip(f"this kernel has no quotas on ext4: {refused}")
    builders = Builders(away.builders.project, tmp_path / "said", prefix=WITHIN_QUOTA)
    try:
        ground = MovedLog(away.template.copy(disk.place / "ground").folder)
        ground.announcements.mkdir(exist_ok=True)
        used = int(subprocess.run(["du", "-sk", disk.place], capture_output=True, check=True).stdout.split()[0])
        for kilobytes in range(0, 8000, 400):
            subprocess.run(
                ["setquota", "-u", "root", str(used + kilobytes), str(used + kilobytes), "0", "0", disk.place],
                check=True,
            )
            builder = builders.start((*ground.words, "-j2"), ground).wait()
            if builder.code:
                refused_clearly(builder, "quota")
        committed, mark = ground.committed(), len(ground.lines())
        subprocess.run(["setquota", "-u", "root", "0", "0", "0", "0", disk.place], check=True)
        goes_on(away, ground, committed, mark)
    finally:
        builders.close()
        disk.remove()


@pytest.mark.whole
def test_a_quota_is_named_where_no_kernel_has_to_count(away, tmp_path):
    """The same answer of the system, from a trap in the builder."""
    ground = away.template.copy(tmp_path / "ground")
    hook = json.dumps({"full_from": 40, "below": [str(ground.cache), str(ground.out)], "errno": "EDQUOT"})
    builder = away.builders.build(ground, "-j1", hook=hook, expect=None)
    refused_clearly(builder, "quota")
    goes_on(away, ground, ground.committed(), len(ground.lines()))


@pytest.mark.parametrize("kind", ["ext4", pytest.param("xfs", marks=pytest.mark.whole)])
@pytest.mark.whole("needs real disks; test_full_disk.py fills one")
def test_after_a_power_cut_nothing_is_stale_or_torn(kind, tier, away, tmp_path):
    """What the disk holds at some instant is all that is left: the copy is mounted in the disk's place."""
    moments = [0.2 * number for number in range(1, 25)]
    if not tier.whole:  # one moment within a build, however fast the machine is
        timed = away.template.copy(tmp_path / "timed")
        began = time.monotonic()
        away.builders.build(timed, "-j2")
        moments = [tier.chance.uniform(0.2, 0.7) * (time.monotonic() - began)]
    cut = 0
    for number, moment in enumerate(moments):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = new_disk(kind, folder, megabytes=48)
        try:
            ground = away.template.copy(disk.place / "ground")
            subprocess.run(["sync", "-f", str(disk.place)], check=True)
            builder = away.builders.start((*ground.words, "-j2"), ground)
            time.sleep(moment)
            alive = [builder.pid, *children(builder.pid)] if builder.poll() is None else []
            for pid in alive:
                signal_to(pid, signal.SIGSTOP)
            image = folder / "cut.image"
            subprocess.run(["cp", "--sparse=always", str(disk.image), str(image)], check=True)
            cut += bool(alive)
            builder.kill("all")
            builder.wait()
            unmounted(disk)
            image.replace(disk.image)
            disk.mount()
            ground.announcements.mkdir(parents=True, exist_ok=True)
            lines = len(ground.lines())
            verdict = away.builders.verify(ground, expect=None)
            print(f"{kind}, cut after {moment:.1f} s: {len(verdict['damaged'])} files torn and put aside")
            assert away.builders.delivered(away.builders.build(ground)) == away.expected
            assert away.builders.verify(ground)["damaged"] == []
            assert ground.leftovers() == []
            assert max(ground.work(since=lines).values(), default=1) == 1
            again = away.builders.build(ground)
            assert again.events[-1]["state"] == "up to date"
            assert away.builders.delivered(again) == away.expected
        finally:
            unmounted(disk)
            shutil.rmtree(folder)
    assert cut


def signal_to(pid, number):
    subprocess.run(["kill", f"-{number.value}", str(pid)], check=False, capture_output=True)


def unmounted(disk):
    """Take a mount away as soon as the last process has left it."""
    for _ in range(100):
        if subprocess.run(["umount", str(disk.place)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"{disk.place} stays busy")
