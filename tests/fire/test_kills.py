"""Killed at any instant: nothing is lost that was committed, nothing half-made is ever seen, the next build goes on.

With `--whole`: 1,000 kills at random instants, and one before every single system call by which a build touches its
store and its packages: about half an hour together on two cores. Otherwise a seeded sample, in half a minute.
"""

import json
import shutil
import time

import pytest
from fire.project import Ground

pytestmark = pytest.mark.slow

VICTIMS = ("builder", "worker", "all")


class Watch:
    """Holds what builders do on a ground against what they had committed before."""

    def __init__(self, field, ground):
        self.builders = field.builders
        self.expected = field.expected
        self.ground = ground
        self.committed = set()
        self.mark = 0

    def look(self):
        """Nothing that was committed before the last look was built since; all of it is still there."""
        again = self.committed & set(self.ground.work(since=self.mark))
        assert not again, f"built again though it had been committed: {again}"
        now = self.ground.committed()
        assert self.committed <= now, f"committed, and lost: {self.committed - now}"
        self.committed = now
        self.mark = len(self.ground.lines())

    def verify(self):
        verdict = self.builders.verify(self.ground)
        assert verdict["damaged"] == []

    def complete(self):
        """A build comes to its end with what an undisturbed one delivers, and leaves nothing lying about."""
        ended = self.builders.build(self.ground)
        self.look()
        assert self.builders.delivered(ended) == self.expected
        assert self.ground.leftovers() == []

    def clear(self):
        """Make room: a whole run has thousands of stores."""
        shutil.rmtree(self.ground.folder)


def test_nothing_is_lost_or_made_twice_when_killed_at_random_instants(tier, field, tmp_path):
    kills = 1000 if tier.whole else 3
    started = time.monotonic()
    timed = field.template.copy(tmp_path / "timed")
    field.builders.build(timed)
    span = time.monotonic() - started
    pieces = len(timed.work())
    done = rounds = 0
    while done < kills:
        rounds += 1
        watch = Watch(field, field.template.copy(tmp_path / f"ground{rounds}"))
        for _ in range(tier.chance.randint(1, 12)):
            real = tier.chance.random() < 0.1
            left = max(1 - len(watch.committed) / pieces, 0.2)
            builder = field.builders.start(
                (*watch.ground.words, f"-j{tier.chance.choice([1, 2, 4])}"), watch.ground, real=real
            )
            time.sleep(tier.chance.random() * span * left * (2 if real else 1))
            if builder.kill(tier.chance.choice(VICTIMS)):
                done += 1
            else:
                span *= 0.97
            if builder.code is None:
                builder.wait()
            watch.look()
            watch.verify()
            if builder.code == 0:
                break
        watch.complete()
        watch.verify()
        watch.clear()
    print(f"{done} kills over {rounds} stores")


def touches(field, folder):
    """Return how many system calls of a build name its store or its packages, lock, write or flush."""
    ground = field.template.copy(folder)
    count = folder / "count"
    field.builders.build(ground, hook=trap(ground, count_into=str(count)))
    return int(count.read_text())


def trap(ground: Ground, **what):
    return json.dumps({"below": [str(ground.cache), str(ground.out)], **what})


@pytest.mark.parametrize("with_workers", [False, True], ids=["alone", "with its workers"])
@pytest.mark.whole("test_nothing_is_lost_or_made_twice_when_killed_at_random_instants")
def test_a_builder_may_be_killed_before_any_system_call(with_workers, field, tmp_path):
    count = touches(field, tmp_path / "counted")
    points = range(1 + with_workers, count + 1, 2)
    killed = 0
    for point in points:
        watch = Watch(field, field.template.copy(tmp_path / f"ground{point}"))
        hook = trap(watch.ground, kill_at=point, with_workers=with_workers)
        code = field.builders.build(watch.ground, hook=hook, expect=None).code
        assert code in (-9, 0), f"killed at {point}"
        killed += code == -9
        watch.look()
        watch.complete()
        watch.verify()
        watch.clear()
    print(f"{killed} kills, at {len(points)} of {count} points")
    assert killed >= len(points) * 0.9  # how often builders look at their locks differs a little from run to run


@pytest.mark.whole("test_nothing_is_lost_or_made_twice_when_killed_at_random_instants")
def test_a_worker_may_be_killed_before_any_system_call(field, tmp_path):
    for point in range(1, 121):
        watch = Watch(field, field.template.copy(tmp_path / f"ground{point}"))
        hook = watch.ground.announcements / "hook"
        hook.write_text(trap(watch.ground, kill_at=point))
        failed = field.builders.build(watch.ground, "-j1", expect=None)
        if failed.code == 0:  # no worker lived to touch so much
            continue
        assert failed.code == 1
        assert [error["what"].partition(" of ")[0] for error in failed.errors()] == ["the worker"], failed.stdout
        assert "was killed from outside (signal 9)" in failed.errors()[0]["what"]
        hook.unlink()
        watch.look()
        watch.verify()
        watch.complete()
        watch.clear()


@pytest.mark.whole("test_nothing_is_lost_or_made_twice_when_killed_at_random_instants")
def test_an_up_to_date_build_may_be_killed_before_any_system_call(field, tmp_path):
    """Without its snapshot, so that it looks at everything, restores a package and writes all its notes."""
    for point in range(1, 400):
        watch = Watch(field, field.undisturbed.copy(tmp_path / f"ground{point}"))
        watch.look()
        for path in (watch.ground.cache / "snapshots").iterdir():
            path.unlink()
        (watch.ground.out / "fire-text0" / "config.pbtxt").write_text("edited")
        code = field.builders.build(watch.ground, hook=trap(watch.ground, kill_at=point), expect=None).code
        watch.complete()
        watch.verify()
        watch.clear()
        if code == 0:
            break


@pytest.mark.parametrize(
    "limits", [(), ("--older-than", "0s"), ("--max-size", "3MB")], ids=["leftovers", "age", "size"]
)
@pytest.mark.sample(1)
def test_a_collection_may_be_killed_before_any_system_call(limits, tier, field, tmp_path):
    """What it has taken out is gone, which is no damage; what it left is whole."""
    for point in range(1, 200) if tier.whole else tier.chance.sample(range(1, 120), 1):
        watch = Watch(field, field.undisturbed.copy(tmp_path / f"ground{point}"))
        next((watch.ground.cache / "records").iterdir()).unlink()  # that leaves some leftovers
        field.builders.verify(watch.ground, expect=1)
        words = ("cache", "gc", "--yes", *limits, "--cache", str(watch.ground.cache))
        ended = field.builders.start(words, watch.ground, hook=trap(watch.ground, kill_at=point)).wait()
        watch.verify()
        watch.complete()
        watch.clear()
        if ended.code == 0:
            break


@pytest.mark.whole("test_nothing_is_lost_or_made_twice_when_killed_at_random_instants")
def test_a_verification_may_be_killed_before_any_system_call(tier, field, tmp_path):
    """What it was about to put aside is found by the next one, and healed by a build in any case."""
    for point in range(1, 400):
        watch = Watch(field, field.undisturbed.copy(tmp_path / f"ground{point}"))
        for place in ("records", "logs", "files", "artifacts"):
            hurt = tier.chance.choice([path for path in (watch.ground.cache / place).rglob("*") if path.is_file()])
            hurt.chmod(0o644)
            hurt.write_bytes(b"hurt")
        words = ("cache", "verify", "--cache", str(watch.ground.cache))
        ended = field.builders.start(words, watch.ground, hook=trap(watch.ground, kill_at=point)).wait()
        watch.complete()
        field.builders.verify(watch.ground, expect=None)
        watch.verify()
        watch.clear()
        if ended.code == 1:
            break
