"""Many builders on one store: each key is made once in all, whoever dies, stands still, verifies or collects.

With `--whole`: more rounds of each, about ten minutes.
"""

import signal
import time
from collections import Counter

import pytest
from fire.builders import Builders
from fire.project import Ground, Project

CROWD = 16


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A project of more than thirty jobs that are not shared."""
    folder = tmp_path_factory.mktemp("wide")
    builders = Builders(Project(folder / "project", variants=5, megabytes=1), folder / "said")
    yield builders
    builders.close()


@pytest.fixture(scope="module")
def wide_template(wide, tmp_path_factory):
    ground = Ground(tmp_path_factory.mktemp("wide") / "template")
    wide.build(ground, "--to", "validate")
    return ground


@pytest.fixture(scope="module")
def wide_expected(wide, wide_template, tmp_path_factory):
    ground = wide_template.copy(tmp_path_factory.mktemp("wide") / "undisturbed")
    return wide.delivered(wide.build(ground))


def made(builders):
    """Return how often which key was said to be built, over all builders."""
    events = [event for builder in builders for event in builder.events]
    return Counter(event["key"] for event in events if event["event"] == "end" and event["state"] == "built")


def test_sixteen_at_once_on_an_empty_cache_make_each_key_once_in_all(builders, expected, tmp_path):
    ground = Ground(tmp_path)
    crowd = [builders.start((*ground.words, "-j2"), ground, real=True) for _ in range(CROWD)]
    for builder in crowd:
        builder.wait(expect=0)
        assert builders.delivered(builder) == expected
    assert set(made(crowd).values()) == {1}
    assert len(made(crowd)) == len(ground.records())
    assert set(ground.work().values()) == {1}
    assert ground.leftovers() == []


def test_sixteen_with_four_workers_each_share_a_wide_recipe(whole, wide, wide_template, wide_expected, tmp_path):
    for number in range(8 if whole else 1):
        ground = wide_template.copy(tmp_path / str(number))
        crowd = [wide.start((*ground.words, "-j4"), ground) for _ in range(CROWD)]
        for builder in crowd:
            builder.wait(expect=0)
            assert wide.delivered(builder) == wide_expected
        assert len(made(crowd)) > 30
        assert set(made(crowd).values()) == {1}
        assert set(ground.work().values()) == {1}
        assert ground.leftovers() == []
        assert wide.verify(ground)["damaged"] == []


def test_the_others_go_on_while_some_are_killed(whole, chance, wide, wide_template, wide_expected, tmp_path):
    for number in range(20 if whole else 1):
        ground = wide_template.copy(tmp_path / str(number))
        crowd = [wide.start((*ground.words, "-j2"), ground) for _ in range(CROWD)]
        killed = 0
        while any(builder.poll() is None for builder in crowd):
            time.sleep(chance.random() * 0.3)
            living = [builder for builder in crowd if builder.code is None]
            if living and len(crowd) < 2 * CROWD:
                killed += chance.choice(living).kill(chance.choice(["builder", "all"]))
                crowd.append(wide.start((*ground.words, "-j2"), ground))
        for builder in crowd:
            assert builder.code in (0, -9), f"{builder.stdout}\n{builder.stderr}"
            if builder.code == 0:
                assert wide.delivered(builder) == wide_expected
        assert killed
        assert max(made(crowd).values()) == 1  # one that was killed may not have come to say so
        assert sum(ground.work().values()) - len(ground.work()) <= 2 * killed
        wide.build(ground)
        assert ground.leftovers() == []
        assert wide.verify(ground)["damaged"] == []


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def stopped(builders, ground):
    """A builder that stands still and holds the lock of a `left`, while others make all the rest."""
    holder = builders.start((*ground.words, "-j1"), ground)
    wait_for(lambda: any(name.startswith("left") for name in ground.work()))
    holder.signal(signal.SIGSTOP)
    held = next(name for name in ground.work() if name.startswith("left"))
    others = [builders.start(ground.words, ground) for _ in range(3)]
    # One half of every other diamond, but what needs the half that is held.
    wait_for(lambda: sum(ground.work("end")[name] for name in ground.work() if name.startswith("right")) == 2)
    wait_for(lambda: sum(name.startswith("stamp") for name in ground.work("end")) == 1)
    time.sleep(0.3)
    assert all(builder.poll() is None for builder in others)
    assert ground.work()[held] == 1
    yield holder, others, held
    holder.signal(signal.SIGCONT) if holder.poll() is None else None


def test_a_key_whose_maker_stands_still_is_waited_for(builders, ground, expected, stopped):
    holder, others, _ = stopped
    holder.signal(signal.SIGCONT)
    for builder in (holder, *others):
        builder.wait(expect=0)
        assert builders.delivered(builder) == expected
    assert set(ground.work().values()) == {1}


def test_a_key_whose_maker_dies_is_taken_over(builders, ground, expected, stopped):
    holder, others, held = stopped
    holder.kill("all")
    for builder in others:
        builder.wait(expect=0)
        assert builders.delivered(builder) == expected
    again = {name for name, count in ground.work().items() if count > 1}
    assert again == {held}
    builders.build(ground)
    assert ground.leftovers() == []


@pytest.mark.parametrize(
    "limits", [(), ("--older-than", "0s"), ("--max-size", "1MB")], ids=["leftovers", "age", "size"]
)
def test_verify_and_gc_may_run_beside_builders(limits, whole, chance, wide, wide_template, wide_expected, tmp_path):
    for number in range(20 if whole else 1):
        ground = wide_template.copy(tmp_path / str(number))
        collect = ("cache", "gc", "--json", *limits, "--cache", str(ground.cache))
        crowd = [wide.start((*ground.words, "-j2"), ground) for _ in range(4)]
        while any(builder.poll() is None for builder in crowd):
            assert wide.verify(ground)["damaged"] == []
            wide.start(collect, ground).wait(expect=0)
            if len(crowd) < 8 and chance.random() < 0.3:
                crowd.append(wide.start((*ground.words, "-j2"), ground))
        for builder in crowd:
            builder.wait(expect=0)
            if not limits:
                assert wide.delivered(builder) == wide_expected
        if not limits:
            assert set(ground.work().values()) == {1}
        assert wide.verify(ground)["damaged"] == []
        last = wide.delivered(wide.build(ground))
        assert last == wide_expected
        assert ground.leftovers() == []
