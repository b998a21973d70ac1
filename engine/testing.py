"""Helpers to test steps, runtimes and tasks of other Python packages: run a step, plan a recipe, add an entry point."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import digest, plugins
from engine.builder import inputs as stored
from engine.builder import jobs, registry
from engine.builder.job import Job
from engine.builder.worker import perform
from engine.builder.worker_task import WorkerTask
from engine.machine import local_gpus
from engine.recipe.schema import Recipe
from engine.step import GPU_VARIABLE, KEY_VARIABLE, Step
from engine.store import output
from engine.store.output import Files
from engine.text import canonical

__all__ = ["VERSION", "Job", "StepOutput", "install", "plan_of", "run_step"]

VERSION = 1
"""The version of this module's names. docs/stability.md tells what a version promises."""


@dataclass(frozen=True)
class StepOutput:
    """The results of a step that a test ran: the step's output folder, report and files."""

    out: Path
    """The folder with the step's output, read-only as in a store."""
    report: Mapping[str, Any]
    """The step's report as a record keeps it: JSON values."""
    files: Files
    """A mapping from the relative path of each output file to its size in bytes and the digest of its content."""


def run_step(step: Step, folder: Path, **inputs: Path | str) -> StepOutput:
    """Run a step as a worker does and return its output, which lies in `folder/out`.

    As in a build, the step gets a copy of its options that was written as JSON and read back. Raises StepError for an
    error of the step itself, an option that comes back as another value, a report that JSON cannot hold, links in the
    output, or an input that the step changed.
    """
    kind = type(step)
    jobs.refuse_lossy(kind.step_name(), step)
    before = {name: _content(place) for name, place in inputs.items()}
    task = WorkerTask(
        step=f"{kind.__module__}:{kind.__qualname__}",
        name=kind.step_name(),
        options=canonical.encode(step),
        inputs={name: str(place) for name, place in inputs.items()},
        out=str(folder / "out"),
        log=str(folder / "log"),
        gpu=local_gpus.name_of(step.hardware()),
    )
    before_run = {name: os.environ.get(name) for name in (KEY_VARIABLE, GPU_VARIABLE)}
    try:
        report = perform(task, kind)
    finally:
        for name, value in before_run.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
    files = output.take(Path(task.out))
    for name, place in inputs.items():
        if _content(place) != before[name]:
            raise stored.changed(task.name, name)
    return StepOutput(Path(task.out), report, files)


def plan_of(recipe: Mapping[str, Any], *kinds: type[Step]) -> tuple[Job, ...]:
    """Return the planned jobs of a recipe. The plan may use the step classes `kinds` and all installed steps.

    `recipe` maps the fields of a recipe, under their YAML names, to values. Raises StepError where the steps make no
    plan, for example because no step makes the input of another step.
    """
    own = {kind.step_name(): kind for kind in kinds}
    return jobs.plan(Recipe.model_validate(dict(recipe), by_alias=True, by_name=False), {**registry.steps(), **own})


def install(folder: Path, group: str, name: str, value: str) -> Path:
    """Install an entry point into a folder, without pip; return the folder of the metadata.

    `group` is `recipe.steps`, `recipe.runtimes` or `recipe.tasks`, and `value` names a Python object as
    "module:object". A program that has `folder` in PYTHONPATH finds the installed entry point.
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
