"""Exportable: which architectures of transformers can be built for which task, by a table of trials."""

# tests/kit/checkpoints/test_exportable.py makes the table: it builds a tiny random checkpoint of every architecture
# with the head of every task, by the steps of a recipe in fp32.

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from engine import tasks

Verdict = Literal["works", "fails", "untried"]
"""What became of a trial: `untried` where no tiny checkpoint that runs could be generated."""

TABLE = Path(__file__).with_name("exportable.txt")
"""The table: a line with the version of transformers, and a line for each model type and task."""
OWN_EXPORT = "export the model to ONNX yourself, and give the .onnx file as `source:` and tensors (.npz) as samples"
"""The hint for a model that works for none of our tasks."""
KINDS = {"pixel_values": "images", "pixel_values_videos": "videos", "input_values": "sound", "input_features": "sound"}
"""Inputs of models that are no text -> what they hold."""
NONE = "-"
"""The name of the task and of the class in the row of a model type that transformers has no class for our tasks of."""


@dataclass(frozen=True)
class Exportability:
    """What became of one architecture with the head of one task; `reason` is empty for one that works."""

    model_type: str
    task: str
    architecture: str
    """The name of the model's class in transformers."""
    verdict: Verdict
    reason: str = ""

    @property
    def has_class(self) -> bool:
        """Whether transformers has a class of the model type for the task."""
        return self.task != NONE


@cache
def rows() -> dict[str, tuple[Exportability, ...]]:
    """Return each model type in the table -> its rows."""
    every: dict[str, list[Exportability]] = {}
    for line in TABLE.read_text("utf-8").splitlines()[1:]:
        model_type, task, architecture, verdict, *reason = line.split("\t")
        known = next(each for each in get_args(Verdict) if each == verdict)
        every.setdefault(model_type, []).append(Exportability(model_type, task, architecture, known, *reason))
    return {name: tuple(few) for name, few in every.items()}


def beyond_text(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the inputs that are no text of a model with this config.json, by the table; () where it names none."""
    reasons = " ".join(row.reason for row in rows().get(str(config.get("model_type")), ()))
    return tuple(dict.fromkeys(name for name in re.findall(r"\w+", reasons) if name in KINDS))


def own_export(config: Mapping[str, Any], name: str) -> str:
    """Return the hint for a model that users export themselves: the command where the table tells the model's inputs.

    `name` is the model as transformers loads it: a directory, or a repository of the hub.
    """
    vision = config.get("vision_config")
    size = config.get("image_size") or (vision.get("image_size") if isinstance(vision, dict) else None) or 224
    image = f"torch.randn(1, 3, {size}, {size})" if isinstance(size, int) else None
    drawn = {"input_values": "torch.randn(1, 16000)", "pixel_values": image, "input_ids": "torch.ones(1, 16).long()"}
    names = beyond_text(config)
    architecture = next(iter(config.get("architectures") or ()), None)
    if not names or architecture is None or not all(drawn.get(each) for each in names):
        return OWN_EXPORT
    every = (*names, *(["input_ids"] if "text_config" in config else []))
    inputs = ", ".join(f"'{each}': {drawn[each]}" for each in every)
    model = f"transformers.{architecture}.from_pretrained('{name}').eval()"
    code = f"import torch, transformers; torch.onnx.export({model}, (), 'model.onnx', kwargs={{{inputs}}})"
    return f'export it to ONNX: python -c "{code}"; then: recipe new model.onnx'


@cache
def version() -> str:
    """Return the version of transformers that the table was made with."""
    with TABLE.open(encoding="utf-8") as file:
        return file.readline().split()[1]


def is_known(model_type: object) -> bool:
    """Whether the table or the installed transformers has a model type.

    The source of transformers is read and not imported, because an import of transformers takes seconds.
    """
    if str(model_type) in rows():
        return True
    spec = importlib.util.find_spec("transformers")
    places = spec.submodule_search_locations if spec is not None else None
    names = Path(places[0], "models", "auto", "auto_mappings.py") if places else TABLE
    return not names.is_file() or f'"{model_type}"' in names.read_text("utf-8")


def installed() -> str:
    """Return the version of the installed transformers; that of the table where none is here."""
    try:
        return metadata.version("transformers")
    except metadata.PackageNotFoundError:
        return version()


def row(model_type: str, task: str, architecture: str | None) -> Exportability | None:
    """Return the row of a model type and a task; None where the table has none.

    Where the table has two classes for the task, such as T5Model and T5EncoderModel, `architecture` chooses. The class
    of an encoder alone is chosen only by its own name.
    """
    same = (row for row in rows().get(model_type, ()) if row.task == task)
    few = sorted(same, key=lambda row: row.architecture.endswith("EncoderModel"))
    return next((row for row in few if row.architecture == architecture), few[0] if few else None)


def tasks_of(model_type: str) -> list[str]:
    """Return the tasks for which a model type works."""
    return list(dict.fromkeys(row.task for row in rows().get(model_type, ()) if row.verdict == "works"))


def headless(model_type: str) -> list[str]:
    """Return the tasks for which a model type works without a head, such as feature-extraction."""
    every = {name: tasks.known(name) for name in tasks_of(model_type)}
    return [name for name, task in every.items() if task is not None and task.embeds]


def others(task: str) -> list[str]:
    """Return well-known model types that work for a task."""
    known = tasks.known(task)
    return [name for name in (known.usual_models if known else ()) if task in tasks_of(name)][:3]
