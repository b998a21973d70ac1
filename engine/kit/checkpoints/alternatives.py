"""Alternatives: the nearest thing that works, for a checkpoint that cannot be built for the task of the recipe."""

from __future__ import annotations

from pathlib import Path

from engine import tasks
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable

shapes_output = False
"""The code of this module only words hints of errors."""

_OWN_EXPORT = "export the model to ONNX yourself, and give the .onnx file as `source:` and tensors (.npz) as samples"


def nearest(checkpoint: Path, task: str) -> str:
    """Return a hint: other tasks that the checkpoint itself can do, other architectures, or an export by the user.

    Any checkpoint can give hidden states. Every other task needs the weights of its head, so a hint names only the task
    that the checkpoint was trained for.
    """
    model_type = checkpoints.config(checkpoint).get("model_type")
    own = checkpoints.own_task(checkpoint)
    works = exportable.tasks_of(model_type) if isinstance(model_type, str) else []
    usable = [name for name in works if name != task and (name == own or _gives_hidden_states(name))]
    ways = [f"say `task: {' or '.join(usable)}` under `model:`"] if usable else []
    if others := exportable.others(task):
        ways.append(f"choose a model of another architecture, such as {', '.join(others)}")
    return "; or ".join([*ways, _OWN_EXPORT])


def _gives_hidden_states(name: str) -> bool:
    task = tasks.known(name)
    return task is not None and task.embeds
