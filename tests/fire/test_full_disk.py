"""A disk that is full, whenever: one clear error, exit 1, nothing corrupt; with room again the build goes on.

With `--whole`: several hundred sizes and moments, about fifteen minutes; otherwise a seeded sample. Needs root, for
mounts of its own, but where the disk is only said to be full.
"""

import json
import shutil

import pytest
from fire import field as fields
from fire.mounts import Disk, own_mounts
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


def refused_clearly(builder, *, one=True):
    """A build that could not go on said so once, in words that help."""
    assert builder.code == 1, builder.stdout + builder.stderr
    errors = builder.errors()
    assert errors, builder.stdout
    # Variants that share a job share its failure.
    assert len({json.dumps(error) for error in errors}) == 1 or not one, errors
    for error in errors:
        text = " ".join([error["what"], *error["facts"]])
        assert "No space left" in text or "full" in text, error
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


def sizes(tier, most):
    """Return numbers from nothing up to `most`, closer at the start: each once."""
    steps = 120 if tier.whole else 6
    exact = {round(most * (step / steps) ** 2) for step in range(steps)}
    return sorted(exact if tier.whole else {0, *(tier.chance.choice(sorted(exact)) for _ in range(3))})


@pytest.mark.parametrize("of", ["bytes", "inodes"])
@pytest.mark.sample(1)
@pytest.mark.whole("test_packages_on_a_full_disk")
def test_a_store_on_a_disk_that_is_too_small(of, tier, away, disk):
    finished = refused = 0
    for number in sizes(tier, 1_400_000 if of == "bytes" else 180):
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
def test_a_disk_that_grows_bit_by_bit_takes_the_build_ever_further(tier, away, disk):
    ground = away.template.copy(disk.place / "ground")
    step = 16384 if tier.whole else 400_000
    code, committed, mark = 1, set(), 0
    for number in range(100):
        disk.limit(free=number * step)
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
def test_a_disk_that_is_full_from_any_call_on(tier, field, tmp_path):
    refused = 0
    for number in range(1, 400) if tier.whole else sorted(tier.chance.sample(range(1, 250), 3)):
        ground = field.template.copy(tmp_path / f"ground{number}")
        hook = json.dumps({"full_from": number, "below": [str(ground.cache), str(ground.out)]})
        builder = field.builders.build(ground, "-j1", hook=hook, expect=None)
        if builder.code:
            refused_clearly(builder)
            refused += 1
        goes_on(field, ground, ground.committed())
        shutil.rmtree(ground.folder)
    assert refused
