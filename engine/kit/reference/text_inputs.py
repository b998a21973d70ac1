"""Text inputs: which of its inputs a transformers model gets from a text, by its tokenizer, config and `forward`."""

from __future__ import annotations

import inspect
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.tasks import Task

TYPES = 2
"""The number of token types where the config of a model that takes token types names no number."""


def names(model: Any, tokenizer: OwnTokenizer | None) -> tuple[str, ...]:
    """Return the names of a transformers model's inputs.

    `token_type_ids` is an input where the checkpoint's tokenizer gives token types and the model tells them apart. A
    checkpoint without a tokenizer has the input where its config has several token types.
    """
    taken = parameters(type(model))
    types = getattr(model.config, "type_vocab_size", None)
    if tokenizer is not None and "token_type_ids" not in tokenizer.names:
        types = 0
    elif tokenizer is not None and types is None:
        types = TYPES
    return tuple(name for name in checkpoints.token_inputs(types or 0) if name in taken)


def parameters(kind: type) -> dict[str, str]:
    """Return the arguments that the method `forward` of a model's class names -> the text of their annotations."""
    every = list(inspect.signature(kind.forward).parameters.values())[1:]  # type: ignore[attr-defined]
    named = (one for one in every if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD))
    return {one.name: "" if one.annotation is one.empty else str(one.annotation) for one in named}


def refuse_token_types(model: Any, inputs: tuple[str, ...], task: Task) -> None:
    """Raise StepError for a model that generates text, such as GPT-2, and answers otherwise without token types.

    BERT and its relatives answer a single text without token types as they answer it with token types of 0.
    """
    if "token_type_ids" in inputs and getattr(model.config, "type_vocab_size", None) is None:
        raise StepError(
            f"the checkpoint's tokenizer gives token types, which {task.name} does not support",
            ["the tokenizer has token_type_ids among its model_input_names"],
            'if the model was trained without token types, write "model_input_names": ["input_ids", "attention_mask"] '
            "into tokenizer_config.json",
        )
