"""The model's architecture: whether it can be built for the recipe's task, by the table of all that were tried."""

from __future__ import annotations

from pathlib import Path

from engine.errors import StepError
from engine.kit.checkpoints import alternatives, exportable
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints.exportable import Exportability


def refuse(checkpoint: Path, task: str) -> None:
    """Raise StepError where the table says that the architecture of a checkpoint cannot be built for a task.

    A build does not look at the table. A build tries, because a config of the user's own may work where the tiny one of
    the trial did not (docs/adr/0029).
    """
    row = _row(checkpoint, task)
    if row is not None and row.verdict == "fails":
        raise StepError(
            f"{row.architecture if row.has_class else row.model_type} cannot be built for {task}",
            [row.reason, f"tried with transformers {exportable.version()}, on a small random model"],
            alternatives.nearest(checkpoint, task),
        )


def refuse_unknown(checkpoint: Path, requested: str | None) -> None:
    """Raise StepError where config.json names no model type, or one that the installed transformers does not have.

    `requested` is the task that the recipe names. No other task makes such a model one that can be built, so that an
    error about the task would lead nowhere.
    """
    if checkpoints.kind(checkpoint) != "transformers":
        return
    config = checkpoints.config(checkpoint)
    model_type = config.get("model_type")
    if model_type is None:
        raise StepError(
            "config.json names no model_type: nobody can tell which architecture the weights belong to",
            [f"it names: {', '.join(list(config)[:8]) or 'nothing'}"],
            "save the model with save_pretrained() of transformers, or name an .onnx file as the source",
        )
    if exportable.is_known(model_type):
        return
    hint = alternatives.nearest(checkpoint, requested or checkpoints.own_task(checkpoint) or "")
    if config.get("auto_map"):
        raise StepError(
            f"the code of {model_type} is in the checkpoint, and that code is never run (trust_remote_code)",
            ["config.json has auto_map, and transformers itself has no such model type"],
            hint,
        )
    raise StepError(
        f"transformers {exportable.installed()} has no model type {model_type}",
        ["config.json names it as the model's architecture"],
        f"install a transformers that has the model type; or {hint}",
    )


def untried(checkpoint: Path, task: str) -> str | None:
    """Return why nobody knows whether the architecture can be built for a task; None where the table tells."""
    if checkpoints.kind(checkpoint) != "transformers":
        return None
    row = _row(checkpoint, task)
    if row is None:
        return f"{checkpoints.config(checkpoint).get('model_type', 'a model without model_type')} for {task}"
    if row.verdict == "untried":
        return f"{row.architecture} for {task} ({row.reason})"
    return None


def _row(checkpoint: Path, task: str) -> Exportability | None:
    """Return the table's row of a checkpoint and a task; None for a checkpoint of timm, and for an ONNX file."""
    if checkpoints.kind(checkpoint) != "transformers":
        return None
    model_type = checkpoints.config(checkpoint).get("model_type")
    every = exportable.rows().get(model_type, ()) if isinstance(model_type, str) else ()
    if every and not every[0].has_class:
        return every[0]
    return exportable.row(str(model_type), task, checkpoints.architecture(checkpoint))
