"""Many builders on one store make each key once in all, whoever dies, stands still, verifies or collects beside them.

With `--whole`: more rounds of each, about ten minutes.
"""

import signal
import time
from collections import Counter

import pytest
from fire import field as fields
from fire.project import Ground, Project

pytestmark = pytest.mark.slow

CROWD = 16


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A project of more than thirty jobs that are not shared."""
    folder = tmp_path_factory.mktemp("wide")
    with fields.field(folder, Project(folder / "project", variants=5, megabytes=1)) as wide_field:
        yield wide_field


def builds(builders):
    """Return how often which key was said to be built, over all builders."""
    events = [event for builder in builders for event in builder.events]
    return Counter(event["key"] for event in events if event["event"] == "end" and event["state"] == "built")


@pytest.mark.whole("test_a_key_whose_maker_dies_is_taken_over")
def test_sixteen_at_once_on_an_empty_cache_make_each_key_once_in_all(field, tmp_path):
    ground = Ground(tmp_path)
    crowd = [field.builders.start((*ground.words, "-j2"), ground, real=True) for _ in range(CROWD)]
    for builder in crowd:
        builder.wait(expect=0)
        assert field.builders.delivered(builder) == field.expected
    assert set(builds(crowd).values()) == {1}
    assert len(builds(crowd)) == len(ground.records())
    assert set(ground.work().values()) == {1}
    assert ground.leftovers() == []


@pytest.mark.whole
def test_sixteen_with_four_workers_each_share_a_wide_recipe(wide, tmp_path):
    for number in range(8):
        ground = wide.template.copy(tmp_path / str(number))
        crowd = [wide.builders.start((*ground.words, "-j4"), ground) for _ in range(CROWD)]
        for builder in crowd:
            builder.wait(expect=0)
            assert wide.builders.delivered(builder) == wide.expected
        assert len(builds(crowd)) > 30
        assert set(builds(crowd).values()) == {1}
        assert set(ground.work().values()) == {1}
        assert ground.leftovers() == []
        assert wide.builders.verify(ground)["damaged"] == []


@pytest.mark.whole
def test_the_others_go_on_while_some_are_killed(tier, wide, tmp_path):
    for number in range(20):
        ground = wide.template.copy(tmp_path / str(number))
        crowd = [wide.builders.start((*ground.words, "-j2"), ground) for _ in range(CROWD)]
        killed = 0
        while any(builder.poll() is None for builder in crowd):
            time.sleep(tier.chance.random() * 0.3)
            living = [builder for builder in crowd if builder.code is None]
            if living and len(crowd) < 2 * CROWD:
                killed += tier.chance.choice(living).kill(tier.chance.choice(["builder", "all"]))
                crowd.append(wide.builders.start((*ground.words, "-j2"), ground))
        for builder in crowd:
            assert builder.code in (0, -9), f"{builder.stdout}\n{builder.stderr}"
            if builder.code == 0:
                assert wide.builders.delivered(builder) == wide.expected
        assert killed
        assert max(builds(crowd).values()) == 1  # one that was killed may not have come to say so
        assert sum(ground.work().values()) - len(ground.work()) <= 2 * killed
        wide.builders.build(ground)
        assert ground.leftovers() == []
        assert wide.builders.verify(ground)["damaged"] == []


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


@pytest.fixture
def stopped(field, ground):
    """A builder that stands still and holds the lock of a `left`, while others make all the rest."""
    holder = field.builders.start((*ground.words, "-j1"), ground)
    wait_for(lambda: any(name.startswith("left") for name in ground.work()))
    holder.signal(signal.SIGSTOP)
    blocked = next(name for name in ground.work() if name.startswith("left"))
    others = [field.builders.start(ground.words, ground) for _ in range(3)]
    # One half of every other diamond, but what needs the half that is held.
    wait_for(lambda: sum(ground.work("end")[name] for name in ground.work() if name.startswith("right")) == 2)
    wait_for(lambda: sum(name.startswith("stamp") for name in ground.work("end")) == 1)
    time.sleep(0.3)
    assert all(builder.poll() is None for builder in others)
    assert ground.work()[blocked] == 1
    yield holder, others, blocked
    if holder.poll() is None:
        holder.signal(signal.SIGCONT)


@pytest.mark.whole("test_a_key_whose_maker_dies_is_taken_over")
def test_a_key_whose_maker_stands_still_is_waited_for(field, ground, stopped):
    holder, others, _ = stopped
    wait_for(lambda: all('"event": "wait"' in builder.stdout for builder in others))
    holder.signal(signal.SIGCONT)
    for builder in (holder, *others):
        builder.wait(expect=0)
    for builder in others:
        waits = [event for event in builder.events if event["event"] == "wait"]
        assert waits, builder.stdout
        assert len({(event["recipe"], event["job"]) for event in waits}) == len(waits)
        assert holder.pid in {event["by"]["pid"] for event in waits}
        assert any("stands still" in event["by"]["text"] for event in waits)
        assert field.builders.delivered(builder) == field.expected
    assert set(ground.work().values()) == {1}


def test_a_key_whose_maker_dies_is_taken_over(field, ground, stopped):
    holder, others, blocked = stopped
    holder.kill("all")
    for builder in others:
        builder.wait(expect=0)
        assert field.builders.delivered(builder) == field.expected
    again = {name for name, count in ground.work().items() if count > 1}
    assert again == {blocked}
    field.builders.build(ground)
    assert ground.leftovers() == []


@pytest.mark.parametrize(
    "limits", [(), ("--older-than", "0s"), ("--max-size", "1MB")], ids=["leftovers", "age", "size"]
)
@pytest.mark.whole
def test_verify_and_gc_may_run_beside_builders(limits, tier, wide, tmp_path):
    for number in range(20):
        ground = wide.template.copy(tmp_path / str(number))
        collect = ("cache", "gc", "--json", "--yes", *limits, "--cache", str(ground.cache))
        crowd = [wide.builders.start((*ground.words, "-j2"), ground) for _ in range(4)]
        while any(builder.poll() is None for builder in crowd):
            assert wide.builders.verify(ground)["damaged"] == []
            wide.builders.start(collect, ground).wait(expect=0)
            if len(crowd) < 8 and tier.chance.random() < 0.3:
                crowd.append(wide.builders.start((*ground.words, "-j2"), ground))
        for builder in crowd:
            builder.wait(expect=0)
            if not limits:
                assert wide.builders.delivered(builder) == wide.expected
        if not limits:
            assert set(ground.work().values()) == {1}
        assert wide.builders.verify(ground)["damaged"] == []
        last = wide.builders.delivered(wide.builders.build(ground))
        assert last == wide.expected
        assert ground.leftovers() == []
