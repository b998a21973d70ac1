"""Custom code: tokenizers and processors that are Python code of the checkpoint, which is never run."""

from __future__ import annotations

from pathlib import Path

from engine.errors import StepError
from engine.kit.checkpoints import json_files

_FILES = ("tokenizer_config.json", "processor_config.json", "preprocessor_config.json")


def refuse(checkpoint: Path) -> None:
    """Raise StepError where the checkpoint says that code of its own turns texts into the model's inputs."""
    for name in _FILES:
        if json_files.settings(checkpoint / name).get("auto_map"):
            raise StepError(
                "the checkpoint's own code makes the model's inputs, and that code is never run (trust_remote_code)",
                [f"{name} has auto_map"],
                "save a tokenizer of the library tokenizers, and name its directory as `tokenizer` beside `source`",
            )
