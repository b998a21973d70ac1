"""Alternatives: the nearest thing that works, for a checkpoint that cannot be built for the task of the recipe."""

from __future__ import annotations

from pathlib import Path

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable


def nearest(checkpoint: Path, task: str) -> str:
    """Return a hint: other tasks that the checkpoint itself can do, other architectures, or an export by the user.

    Any checkpoint can give hidden states. Every other task needs the weights of its head, so a hint names only the task
    that the checkpoint was trained for.
    """
    config = checkpoints.config(checkpoint)
    model_type = config.get("model_type")
    own = checkpoints.own_task(checkpoint)
    works = exportable.tasks_of(model_type) if isinstance(model_type, str) else []
    usable = [name for name in works if name != task and name in {own, *exportable.headless(str(model_type))}]
    ways = [f"say `task: {' or '.join(usable)}` under `model:`"] if usable else []
    if others := exportable.others(task):
        ways.append(f"choose a model of another architecture, such as {', '.join(others)}")
    return "; or ".join([*ways, exportable.own_export(config, str(checkpoint))])
