"""What is changed behind a build's back, at the worst moments: nothing stale, partial or corrupt is ever delivered.

What a build delivers is held against what one from an empty store delivers. With `--whole`: hundreds of moments, about
ten minutes; otherwise a seeded sample.
"""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from fire.builders import Builders
from fire.project import Project

pytestmark = pytest.mark.slow

DAY = 86400


class Scene:
    """A project of a test's own, whose input and code may be changed, and what each state of it ought to give."""

    def __init__(self, folder, template):
        self.last = ("--to", "stamp")
        """How far builds go: the package is the slowest of all, and only some tests are about it."""
        self.project = Project(folder / "project", megabytes=1)
        self.builders = Builders(self.project, folder / "said")
        self.ground = template.copy(folder / "ground")
        self.helper = self.project.site / "fire_steps" / "helper.py"
        self._template = template
        self._folder = folder
        self._fresh = {}

    def build(self, *more, **options):
        return self.builders.build(self.ground, *self.last, *more, **options)

    def right(self, ended):
        """Hold what a build delivers against what one delivers that has nothing to go by."""
        assert self.builders.delivered(ended) == self.fresh()

    def fresh(self):
        state = (self.project.source.read_bytes(), self.helper.read_bytes())
        if state not in self._fresh:
            ground = self._template.copy(self._folder / f"fresh{len(self._fresh)}")
            self._fresh[state] = self.builders.delivered(self.builders.build(ground, *self.last))
        return self._fresh[state]


@pytest.fixture
def scene(field, tmp_path):
    scene = Scene(tmp_path, field.template)
    yield scene
    scene.builders.close()


def edit(path, text, *, like=None):
    """Write a text in place; `like` gives the times that the file then shows."""
    path.write_text(text)
    if like is not None:
        os.utime(path, ns=(like.st_atime_ns, like.st_mtime_ns))


def texts(number):
    """Return texts of the same length, one a number."""
    return f"from outside {number:06}\n"


def test_an_input_edited_right_before_and_right_behind_its_being_read_is_seen(scene, tier):
    """Both edits may lie within one tick of the clock, at the same size: nothing in the stat row tells them apart."""
    scene.last = ("--to", "read")
    for number in range(1, 200 if tier.whole else 2):
        edit(scene.project.source, texts(number % 5))
        hook = act_at(scene, tier.chance.randint(1, 30), texts((number + 1) % 5))
        assert scene.build(hook=hook, expect=None).code in (0, 1)
        taken(scene, scene.build())
        edit(scene.project.source, texts(number % 5))
        taken(scene, scene.build())


def taken(scene, ended):
    """The step that reads the input has what it holds now."""
    paths = [event["path"] for event in ended.events if event.get("job") == "read" and "path" in event]
    assert paths
    for path in paths:
        assert Path(path, "text.txt").read_text() == scene.project.source.read_text()


def act_at(scene, number, text, target=None):
    """Let the builder itself, before its n-th touch of the store or the project, find the input edited."""
    below = [str(scene.ground.cache), str(scene.ground.out), str(scene.project.folder)]
    return json.dumps({"edit_at": number, "below": below, "path": str(target or scene.project.source), "text": text})


@pytest.mark.whole("test_an_input_edited_right_before_and_right_behind_its_being_read_is_seen")
def test_an_input_may_change_at_any_moment_of_a_build(scene, tier):
    _change_meanwhile(scene, scene.project.source, (texts(1), texts(2)), 200, tier.chance)


@pytest.mark.whole
def test_the_code_may_change_at_any_moment_of_a_build(scene, tier):
    old = scene.helper.read_text()
    new = old.replace('MARK = "+"', 'MARK = "*"')
    _change_meanwhile(scene, scene.helper, (old, new), 100, tier.chance)


@pytest.mark.whole
def test_the_code_may_change_between_two_jobs_that_it_is_for(scene):
    """The second may find it in another worker, under a key that was reckoned before."""
    old = scene.helper.read_text()
    new = old.replace('MARK = "+"', 'MARK = "*"')
    for number in range(20):
        scene.ground = scene._template.copy(scene._folder / f"ground{number}")
        edit(scene.helper, old)
        time.sleep(0.05)
        disturbed = scene.builders.start((*scene.ground.words, *scene.last, "-j4"), scene.ground)
        while disturbed.poll() is None and not any(line.startswith("begin join") for line in scene.ground.lines()):
            pass
        edit(scene.helper, new)
        disturbed.wait()
        scene.right(scene.build())
        edit(scene.helper, old)
        scene.right(scene.build())


def _change_meanwhile(scene, path, states, times, chance):
    """Whatever the disturbed build says, neither the old nor the new state may then be given what it is not."""
    old, new = states
    right = []
    for text in states:
        edit(path, text)
        right.append(scene.fresh())
    for number in range(times):
        scene.ground = scene._template.copy(scene._folder / f"ground{number}")
        edit(path, old)
        time.sleep(chance.choice([0, 0.05]))
        if number % 2:
            disturbed = scene.build(hook=act_at(scene, chance.randint(1, 700), new, path), expect=None)
        else:
            disturbed = scene.builders.start((*scene.ground.words, *scene.last), scene.ground)
            time.sleep(chance.random() * 1.0)
            edit(path, new)
            disturbed.wait()
        assert disturbed.code in (0, 1), disturbed.stdout + disturbed.stderr
        if disturbed.code == 0:
            assert scene.builders.delivered(disturbed) in right
        else:
            assert all("changed while" in error["what"] for error in disturbed.errors()), disturbed.errors()
        edit(path, new)
        scene.right(scene.build())
        edit(path, old)
        scene.right(scene.build())
        assert scene.builders.verify(scene.ground)["damaged"] == []
        shutil.rmtree(scene.ground.folder)


@pytest.mark.whole
def test_two_builders_at_once_with_two_versions_of_an_input_deliver_each_its_own(scene, tier):
    states = {}
    for number in range(30):
        scene.ground = scene._template.copy(scene._folder / f"ground{number}")
        edit(scene.project.source, texts(1))
        states[1] = scene.fresh()
        first = scene.builders.start((*scene.ground.words, *scene.last), scene.ground)
        time.sleep(tier.chance.random())
        other = scene.project.folder / "other.txt"
        edit(other, texts(2))
        os.replace(other, scene.project.source)
        states[2] = scene.fresh()
        second = scene.builders.start((*scene.ground.words, *scene.last), scene.ground)
        first.wait()
        second.wait(expect=0)
        assert scene.builders.delivered(second) == states[2]
        if first.code == 0:
            assert scene.builders.delivered(first) in states.values()
        else:
            assert all("changed while" in error["what"] for error in first.errors())
        scene.right(scene.build())
        edit(scene.project.source, texts(1))
        scene.right(scene.build())


@pytest.mark.parametrize("jumps", [(DAY, -DAY, 0), (-3650 * DAY, 0, 3650 * DAY)])
@pytest.mark.sample(1)
@pytest.mark.whole("test_an_input_edited_right_before_and_right_behind_its_being_read_is_seen")
def test_a_clock_that_jumps_hides_no_change(scene, jumps):
    for number, jump in enumerate(jumps):
        edit(scene.project.source, texts(number), like=scene.project.source.stat())
        scene.right(scene.build(hook=json.dumps({"clock": jump})))
        scene.right(scene.build(hook=json.dumps({"clock": -jump})))
    assert scene.builders.verify(scene.ground)["damaged"] == []


@pytest.mark.whole
def test_collection_by_age_under_a_clock_that_jumped_takes_nothing_that_is_new(scene):
    scene.build(hook=json.dumps({"clock": 3650 * DAY}))
    collect = ("cache", "gc", "--older-than", "1d", "--yes", "--cache", str(scene.ground.cache))
    scene.builders.start(collect, scene.ground).wait(expect=0)
    assert set(scene.build().states().values()) == {"cached"}
    # Under a clock that is ahead all looks old, and goes; what is left is whole.
    scene.builders.start(collect, scene.ground, hook=json.dumps({"clock": 7300 * DAY})).wait(expect=0)
    scene.right(scene.build())
    assert scene.builders.verify(scene.ground)["damaged"] == []
