"""Labels: the names of a checkpoint's classes, and how a logit becomes a score."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import sentences
from engine.text import lists

Score = Literal["softmax", "sigmoid", "number"]
_SCORES: Mapping[str, Score] = {"Identity": "number", "Sigmoid": "sigmoid", "Softmax": "softmax"}
"""The functions of a CrossEncoder that a package computes, by the names of torch's classes."""
_LISTED = 8
"""The largest number of classes that an error lists."""
_DEFAULT_LABELS = 2
"""The number of classes where config.json names none: the default of `PreTrainedConfig.num_labels` in transformers."""


def write(checkpoint: Path, labels: Sequence[str]) -> None:
    """Write the recipe's names of the classes into the checkpoint of an ONNX file."""
    text = json.dumps({"id2label": dict(enumerate(labels))}, ensure_ascii=False)
    (checkpoint / checkpoints.LABELS).write_text(f"{text}\n", "utf-8")


def names(checkpoint: Path, classes: int | None) -> list[str]:
    """Return the name of each class, from transformers' `id2label` or timm's `label_names` in config.json.

    Where the number of names in config.json differs from `classes`, default names are returned: LABEL_0, LABEL_1 and so
    on, as in transformers, but 0, 1 and so on for a model of timm or an ONNX file. Without `classes`, the names in
    config.json are returned.
    """
    config = checkpoints.config(checkpoint)
    own = config.get("label_names")
    labels = _in_order(_by_number(config.get("id2label"))) or (list(map(str, own)) if isinstance(own, list) else [])
    if len(labels) == classes or classes is None:
        return labels
    prefix = "LABEL_" if checkpoints.kind(checkpoint) == "transformers" else ""
    return [f"{prefix}{number}" for number in range(classes)]


def numbers(checkpoint: Path) -> dict[str, int]:
    """Return the name of each class -> its number, by `label2id` or else `id2label` in config.json.

    A config.json without `label2id` and `id2label` means the default names, because transformers leaves both fields out
    where the names are LABEL_0 and LABEL_1.
    """
    config = checkpoints.config(checkpoint)
    by_name = config.get("label2id")
    if isinstance(by_name, dict) and by_name:
        return {name: number for name, number in by_name.items() if isinstance(number, int)}
    by_number = config.get("id2label")
    if isinstance(by_number, dict) and by_number:
        return {name: int(number) for number, name in _by_number(by_number).items() if number.isdecimal()}
    count = config.get("num_labels", _DEFAULT_LABELS if config else 0)
    return {f"LABEL_{number}": number for number in range(count if isinstance(count, int) else 0)}


def count(checkpoint: Path) -> int:
    """Return the number of classes by config.json, as transformers counts them: by `id2label`, else `num_labels`."""
    config = checkpoints.config(checkpoint)
    by_number, number = config.get("id2label"), config.get("num_labels", _DEFAULT_LABELS)
    if isinstance(by_number, dict) and by_number:
        return len(by_number)
    return number if isinstance(number, int) else _DEFAULT_LABELS


def refuse_number(label: int, sample: str, classes: int) -> None:
    """Raise StepError where a model with `classes` classes has no class with the number `label`."""
    if not 0 <= label < classes:
        raise StepError(
            f"the label {label} of {sample} is none of the model's classes",
            [f"the model has {classes} classes: 0 to {classes - 1}"],
        )


def score(checkpoint: Path, classes: int) -> Score:
    """Return how a logit becomes a score, `softmax`, `sigmoid` or `number`: as users of the original get it.

    A CrossEncoder of sentence-transformers names its own function. For a model of transformers, `problem_type` of
    config.json decides as in the text-classification pipeline: the score is the logit itself in a regression, and the
    sigmoid of the logit where several labels may apply at once, or where there is a single class. The single number of
    a model of another kind is the score.
    """
    config = checkpoints.config(checkpoint)
    own = sentences.activation(checkpoint, config, classes)
    if own is not None:
        return _SCORES.get(own, "number")  # `published` refuses other functions
    problem = config.get("problem_type")
    if problem == "multi_label_classification":
        return "sigmoid"
    if problem == "regression":
        return "number"
    if classes == 1:
        return "sigmoid" if checkpoints.kind(checkpoint) == "transformers" else "number"
    return "softmax"


def refuse_gaps(checkpoint: Path) -> None:
    """Raise StepError where `id2label` of config.json does not number the classes 0, 1, 2, ..."""
    labels = _by_number(checkpoints.config(checkpoint).get("id2label"))
    if labels and not _in_order(labels):
        model = lists.first_of([str(number) for number in range(len(labels))], _LISTED)
        raise StepError(
            f"id2label names the classes {lists.first_of(list(labels), _LISTED)}; the model has {model}",
            [f"config.json: {lists.first_of([f'{number}: {name}' for number, name in labels.items()], _LISTED)}"],
            "number the classes in `id2label` and `label2id` of config.json from 0, in the order of the model's logits",
        )


def _by_number(id2label: Any) -> dict[str, str]:
    """Return each class number in `id2label` -> the class name, both as text; {} where `id2label` is no JSON object."""
    if not isinstance(id2label, Mapping):
        return {}
    return {str(number): str(name) for number, name in id2label.items()}


def _in_order(labels: Mapping[str, str]) -> list[str]:
    """Return the names of classes in the order of their numbers; [] where the numbers are not exactly 0, 1, 2, ..."""
    keys = [str(number) for number in range(len(labels))]
    return [labels[key] for key in keys] if labels.keys() == set(keys) else []
