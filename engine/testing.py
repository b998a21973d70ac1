"""What tests of a step, a runtime or a task of one's own need: run it as a build would, and see where it joins."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import digest, plugins
from engine.builder import jobs, registry
from engine.builder.jobs import Job
from engine.builder.worker import WorkerTask, perform
from engine.errors import StepError
from engine.recipe.schema import Recipe
from engine.step import KEY_VARIABLE, Step
from engine.store import output
from engine.store.output import Files

__all__ = ["VERSION", "Job", "StepOutput", "install", "plan_of", "run_step"]

VERSION = 1
"""The version of what this module offers: see docs/stability.md."""


@dataclass(frozen=True)
class StepOutput:
    """What a step made."""

    out: Path
    """The folder with its output, read-only as in a store."""
    report: Mapping[str, Any]
    """What it reported, as it is filed: JSON values."""
    files: Files
    """Relative path -> size in bytes and content."""


def run_step(step: Step, folder: Path, **inputs: Path | str) -> StepOutput:
    """Run a step as a worker does, with its options written as JSON and read back; its output goes to `folder/out`.

    Raises StepError where a build would: for what the step raises itself, a report that JSON cannot hold, an output
    that holds links, or an input that it changed.
    """
    before = {name: _content(place) for name, place in inputs.items()}
    kind = type(step)
    task = WorkerTask(
        step=f"{kind.__module__}:{kind.__qualname__}",
        name=kind.step_name(),
        options=step.model_dump(mode="json", by_alias=True),
        inputs={name: str(place) for name, place in inputs.items()},
        out=str(folder / "out"),
        log=str(folder / "log"),
    )
    known = os.environ.get(KEY_VARIABLE)
    try:
        report = perform(task, kind)
    finally:
        os.environ.pop(KEY_VARIABLE, None)
        os.environ.update({} if known is None else {KEY_VARIABLE: known})
    made = output.take(Path(task.out))
    for name, place in inputs.items():
        if _content(place) != before[name]:
            raise StepError(
                f"the step {task.name!r} damaged its input {name!r}",
                hint="a step must work on a copy of what it changes",
            )
    return StepOutput(Path(task.out), report, made)


def plan_of(recipe: Mapping[str, Any], *kinds: type[Step]) -> tuple[Job, ...]:
    """Return the jobs of a recipe, said as in YAML, with steps of one's own beside those that are installed.

    Raises StepError where they cannot be joined.
    """
    own = {kind.step_name(): kind for kind in kinds}
    return jobs.plan(Recipe.model_validate(dict(recipe), by_alias=True, by_name=False), {**registry.steps(), **own})


def install(folder: Path, group: str, name: str, value: str) -> Path:
    """Let a folder on the import path bring something, as an installed package does; return its metadata's folder.

    `group` is `recipe.steps`, `recipe.runtimes` or `recipe.tasks`; `value` is "module:object". A program that is
    started with the folder in PYTHONPATH has it.
    """
    if group not in plugins.GROUPS:
        raise ValueError(f"{group} is none of {', '.join(plugins.GROUPS)}")
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {value}\n")
    return metadata


def _content(place: Path | str) -> object:
    if isinstance(place, str):
        return place
    if place.is_file():
        return digest.of_file(place)
    return {name: digest.of_file(place / name) for name in digest.walk(place)}
