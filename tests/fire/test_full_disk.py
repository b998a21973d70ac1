"""A disk that is full, whenever: one clear error, exit 1, nothing corrupt; with room again the build goes on.

So it does after a power cut. With `--whole`: several hundred sizes and moments, about fifteen minutes; otherwise a
seeded sample. Needs root, for mounts of its own, but where the disk is only said to be full.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from fire import field as fields
from fire.builders import children
from fire.mounts import Disk, new_disk, own_mounts
from fire.project import Ground, Project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """A project whose builders run among mounts of their own."""
    folder = tmp_path_factory.mktemp("away")
    with own_mounts(), fields.field(folder, Project(folder / "project", megabytes=1)) as mounted_field:
        yield mounted_field


@pytest.fixture
def disk(away, tmp_path):
    small_disk = Disk(tmp_path / "disk")
    yield small_disk
    small_disk.remove()


def refused_clearly(builder, *words, one=True):
    """A build that could not go on said so once, in words that help."""
    assert builder.code == 1, builder.stdout + builder.stderr
    errors = builder.errors()
    assert errors, builder.stdout
    # Variants that share a job share its failure.
    assert len({json.dumps(error) for error in errors}) == 1 or not one, errors
    for error in errors:
        text = " ".join([error["what"], *error["facts"]])
        assert any(word in text for word in words or ("No space left", "full")), error
        assert any(words in error["hint"] for words in ("free some", "writable folder")), error
    last = builder.events[-1]
    assert (last["event"], last["exit"]) == ("build", 1)


def goes_on(field, ground, committed):
    """With room again nothing is corrupt, and what had been committed is not built again."""
    mark = len(ground.lines())
    assert field.builders.verify(ground)["damaged"] == []
    ended = field.builders.build(ground)
    assert field.builders.delivered(ended) == field.expected
    assert not committed & set(ground.work(since=mark))
    assert ground.leftovers() == []


def sizes(most):
    """Return numbers from nothing up to `most`, closer at the start: each once."""
    return sorted({round(most * (step / 120) ** 2) for step in range(120)})


@pytest.mark.parametrize("of", ["bytes", "inodes"])
@pytest.mark.whole("test_packages_on_a_full_disk")
def test_a_store_on_a_disk_that_is_too_small(of, away, disk):
    finished = refused = 0
    for number in sizes(1_400_000 if of == "bytes" else 180):
        disk.limit()
        ground = away.template.copy(disk.place / "ground")
        disk.limit(**({"free": number} if of == "bytes" else {"inodes": number}))
        # The log and the packages are elsewhere: it is the store whose disk is full.
        elsewhere = Ground(disk.place.parent / "elsewhere")
        words = ("build", "r.yaml", "--json", "-j1", "--cache", str(ground.cache), "-o", str(elsewhere.out))
        builder = away.builders.start(words, elsewhere).wait()
        if builder.code == 0:
            finished += 1
            assert away.builders.delivered(builder) == away.expected
        else:
            refused += 1
            refused_clearly(builder)
        committed = ground.committed()
        disk.limit()
        goes_on(away, ground, committed)
        shutil.rmtree(ground.folder)
        shutil.rmtree(elsewhere.folder)
    assert refused
    print(f"{refused} builds refused, {finished} had room enough")


@pytest.mark.whole("test_packages_on_a_full_disk")
def test_a_disk_that_grows_bit_by_bit_takes_the_build_ever_further(away, disk):
    ground = away.template.copy(disk.place / "ground")
    code, committed, mark = 1, set(), 0
    for number in range(100):
        disk.limit(free=number * 16384)
        builder = away.builders.start((*ground.words, "-j1"), Ground(disk.place.parent / "elsewhere")).wait()
        began = Ground(disk.place.parent / "elsewhere").work(since=mark)
        assert not committed & set(began)
        assert set(began.values()) <= {1}
        committed = ground.committed()
        mark = len(Ground(disk.place.parent / "elsewhere").lines())
        code = builder.code
        if code == 0:
            break
        refused_clearly(builder)
    assert code == 0
    assert away.builders.delivered(builder) == away.expected


def test_packages_on_a_full_disk(tier, away, disk, tmp_path):
    for number in (0, 4096, 8192, 12288, 16384, 20480, 24576) if tier.whole else (0, 12288):
        ground = away.template.copy(tmp_path / f"ground{number}")
        out = disk.place / "build"
        words = (*ground.words[:-1], str(out))
        disk.limit(free=number)
        builder = away.builders.start(words, ground).wait()
        if builder.code:
            refused_clearly(builder, one=False)
            # The packages are made: only their place is full.
            assert not [event for event in builder.events if event.get("job") == "stamp" and event["event"] == "end"
                        and event["state"] != "built"]  # fmt: skip
        mark = len(ground.lines())
        disk.limit()
        ended = away.builders.start(words, ground).wait(expect=0)
        assert away.builders.delivered(ended) == away.expected
        assert not ground.work(since=mark)
        assert {path.name.lstrip(".").removesuffix(".artifact") for path in out.iterdir()} == set(
            away.expected.packages
        )
        shutil.rmtree(out)


@pytest.mark.whole("test_packages_on_a_full_disk")
def test_the_scratch_of_a_worker_on_a_full_disk(away, disk, tmp_path):
    """`stamp` works in a temporary file, and hears there that there is no room for it."""
    ground = away.template.copy(tmp_path / "ground")
    environment = {"TMPDIR": str(disk.place)}
    disk.limit(free=8192)
    builder = away.builders.start((*ground.words, "-j1"), ground, environment=environment).wait()
    refused_clearly(builder)
    committed = ground.committed()
    assert committed
    mark = len(ground.lines())
    disk.limit()
    ended = away.builders.start(ground.words, ground, environment=environment).wait(expect=0)
    assert not committed & set(ground.work(since=mark))
    assert away.builders.delivered(ended) == away.expected


@pytest.mark.whole
def test_a_disk_that_is_full_from_any_call_on(field, tmp_path):
    refused = 0
    for number in range(1, 400):
        ground = field.template.copy(tmp_path / f"ground{number}")
        hook = json.dumps({"full_from": number, "below": [str(ground.cache), str(ground.out)]})
        builder = field.builders.build(ground, "-j1", hook=hook, expect=None)
        if builder.code:
            refused_clearly(builder)
            refused += 1
        goes_on(field, ground, ground.committed())
        shutil.rmtree(ground.folder)
    assert refused


@pytest.mark.whole("test_packages_on_a_full_disk")
def test_a_quota_that_is_used_up_is_named(field, tmp_path):
    """The same answer of the system, from a trap in the builder."""
    ground = field.template.copy(tmp_path / "ground")
    hook = json.dumps({"full_from": 40, "below": [str(ground.cache), str(ground.out)], "errno": "EDQUOT"})
    builder = field.builders.build(ground, "-j1", hook=hook, expect=None)
    refused_clearly(builder, "quota")
    goes_on(field, ground, ground.committed())


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.whole("test_nothing_is_lost_or_made_twice_when_killed_at_random_instants")
def test_after_a_power_cut_nothing_is_stale_or_torn(kind, away, tmp_path):
    """What the disk holds at some instant is all that is left: the copy is mounted in the disk's place."""
    cut = 0
    for number in range(1, 25):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = new_disk(kind, folder)
        try:
            ground = away.template.copy(disk.place / "ground")
            subprocess.run(["sync", "-f", str(disk.place)], check=True)
            builder = away.builders.start((*ground.words, "-j2"), ground)
            time.sleep(0.2 * number)
            alive = [builder.pid, *children(builder.pid)] if builder.poll() is None else []
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
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
            print(f"{kind}, cut after {0.2 * number:.1f} s: {len(verdict['damaged'])} files torn and put aside")
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


def unmounted(disk):
    """Take a mount away as soon as the last process has left it."""
    for _ in range(100):
        if subprocess.run(["umount", str(disk.place)], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f"{disk.place} stays busy")
