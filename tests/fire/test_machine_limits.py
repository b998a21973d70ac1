"""Real limits of the machine: a job that the kernel kills for want of memory, and no further processes.

Needs root, for control groups.
"""

import json

import pytest
from fire.builders import Builders
from fire.cgroups import limited
from fire.project import Ground, Project

pytestmark = [pytest.mark.slow, pytest.mark.whole]

EAT = '''\
"""Fills memory."""

from pathlib import Path
from typing import ClassVar

from engine.step import Step


class Eat(Step):
    """Fills memory."""

    makes: ClassVar[str] = "eaten"
    megabytes: int = 0

    def run(self, out: Path, *, seeded: Path) -> None:
        print("eating", flush=True)
        food = [b"x" * 1_000_000 for _ in range(self.megabytes)]
        (out / "size").write_text(str(sum(map(len, food))))
'''
MEGABYTES = 700
LIMIT = 400_000_000


@pytest.fixture
def hungry(tmp_path):
    """A project with a job that needs much memory."""
    project = Project(tmp_path / "project", variants=1, megabytes=1)
    (project.site / "fire_steps" / "eat.py").write_text(EAT)
    points = project.site / "fire_steps-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"{points.read_text()}eat = fire_steps.eat:Eat\n")
    recipe = project.folder / "r.yaml"
    recipe.write_text(f"{recipe.read_text()}  eat: {{megabytes: {MEGABYTES}}}\n")
    return project


def build(project, ground, folder, prefix=()):
    builders = Builders(project, folder, prefix=prefix)
    try:
        builder = builders.build(ground, "-j1", "--to", "eat", expect=None)
        return builder, builders.verify(ground)
    finally:
        builders.close()


def test_a_job_that_the_kernel_kills_for_want_of_memory_is_told_and_can_be_built_again(hungry, tmp_path):
    ground = Ground(tmp_path / "ground")
    with limited("memory", LIMIT) as prefix:
        builder, verdict = build(hungry, ground, tmp_path / "limited", prefix)
    assert builder.code == 1, builder.stdout + builder.stderr
    [text] = {json.dumps(error) for error in builder.errors()}
    assert "signal 9" in text, text
    assert "memory" in text, text
    assert builder.states()["fire-text0", "eat"] == "failed"
    assert verdict["damaged"] == []
    again, verdict = build(hungry, ground, tmp_path / "free")
    assert again.code == 0, again.stdout + again.stderr
    assert again.states() == {("fire-text0", "seed"): "cached", ("fire-text0", "eat"): "built"}
    assert verdict["damaged"] == []


def test_no_further_process_is_the_cause_that_is_named(hungry, tmp_path):
    ground = Ground(tmp_path / "ground")
    with limited("pids", 3) as prefix:  # the zygote, a builder, and no worker with its thread
        builder, verdict = build(hungry, ground, tmp_path / "limited", prefix)
    assert builder.code == 1, builder.stdout + builder.stderr
    text = json.dumps(builder.errors()) + builder.stderr
    assert "processes or threads" in text or "worker" in text, text
    assert "recipe itself" not in text, text
    assert verdict["damaged"] == []
    again, _ = build(hungry, ground, tmp_path / "free")
    assert again.code == 0, again.stdout + again.stderr
