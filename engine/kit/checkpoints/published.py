"""Published: refuses a checkpoint whose own files ask for what a package would not do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import json_files, labels, sentences
from engine.tasks import Classes
from engine.text import lists

_LISTED = 8
"""The largest number of tokens that an error lists."""


def refuse(checkpoint: Path, requested: str | None, *, num_labels: int | None = None) -> None:
    """Raise StepError where a package for a task would answer otherwise than the original does for its users.

    `requested` is the task that the recipe names, and `num_labels` the number of classes of a head that it draws.
    """
    if checkpoints.kind(checkpoint) != "transformers":
        return
    config = checkpoints.config(checkpoint)
    task = tasks.find(checkpoints.task(checkpoint, requested))
    if task.embeds or requested is None:
        if checkpoints.architecture(checkpoint) == "HF_ColBERT":
            raise sentences.unsupported("config.json has architectures: HF_ColBERT, whose vectors are of each token")
        if task.classes is None:
            sentences.load(checkpoint)
    if task.classes is Classes.ROWS:
        sentences.refuse_other_pairs(checkpoint, config, num_labels or labels.count(checkpoint))
    if task.classes is not None and num_labels is None:
        labels.refuse_gaps(checkpoint)


def table_rows(config: dict[str, Any]) -> int | None:
    """Return the number of tokens that a model has embeddings for, by its config.json; None where the file has none."""
    rows = config.get("vocab_size", checkpoints.text_config(config).get("vocab_size"))
    return rows if isinstance(rows, int) else None


def refuse_more_tokens(tokenizer: Path, rows: int | None) -> None:
    """Raise StepError where a tokenizer has tokens for which a model with so many rows has no embedding.

    `tokenizer` is the directory with tokenizer.json, or the file itself; a tokenizer in other files is not looked at. A
    special token of another part of the model, such as Gemma's `<image_soft_token>`, is none of a text: a package's
    tokenizer lacks it (`kit/inputs/tokenizer.py`).
    """
    path = tokenizer if tokenizer.is_file() else checkpoints.tokenizer_file(tokenizer)
    beyond = {} if rows is None or path is None else _beyond(json_files.load(path), rows)
    if beyond:
        text, number = max(beyond.items(), key=lambda item: item[1])
        raise StepError(
            f"the tokenizer's token {text!r} has the id {number}, and the model has only {rows} embeddings",
            [f"tokens with ids from {rows} on: {lists.first_of(list(beyond), _LISTED)}"],
            "name the tokenizer that the model was trained with; or call model.resize_token_embeddings(len(tokenizer)) "
            "and save the model",
        )


def _beyond(content: Any, rows: int) -> dict[str, int]:
    """Return the tokens of a tokenizer.json whose ids are `rows` or more."""
    fields = content if isinstance(content, dict) else {}
    model, added = fields.get("model"), fields.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):
        vocabulary = {str(entry[0]): number for number, entry in enumerate(vocabulary[rows:], rows)}
    plain = (each for each in added or () if not each.get("special"))
    tokens = {**(vocabulary or {}), **{str(each.get("content")): each.get("id") for each in plain}}
    return {text: number for text, number in tokens.items() if isinstance(number, int) and number >= rows}
