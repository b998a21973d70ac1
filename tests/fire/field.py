"""What a test under fire starts from: a project, what starts builders for it, and what an undisturbed build gives."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fire.builders import Builders
from fire.project import Delivery, Ground, Project


@dataclass(frozen=True)
class Field:
    """A project with all that its builds are held against. Its grounds are not to be touched, but copies of them."""

    builders: Builders
    template: Ground
    """Here the model is checked, and no step of ours has run yet."""
    undisturbed: Ground
    """Here a build has come to its end that nobody disturbed."""
    expected: Delivery
    """What it delivered."""


@dataclass(frozen=True)
class Tier:
    """How much is tried, and by which random numbers."""

    whole: bool
    """Everything, instead of a seeded sample."""
    chance: random.Random


@contextlib.contextmanager
def field(folder: Path, project: Project, *, prefix: Sequence[str] = ()) -> Iterator[Field]:
    """Make a field; `prefix` is a command under which the builders run."""
    builders = Builders(project, folder / "said", prefix=prefix)
    try:
        template = Ground(folder / "template")
        builders.build(template, "--to", "validate")
        undisturbed = template.copy(folder / "undisturbed")
        expected = builders.delivered(builders.build(undisturbed))
        yield Field(builders, template, undisturbed, expected)
    finally:
        builders.close()
