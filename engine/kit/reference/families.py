"""Families of transformers models: the tasks that a family supports, and the inputs that its models take."""

from __future__ import annotations

import inspect
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.reference.own_tokenizer import OwnTokenizer
from engine.tasks import Classes, Generates, Task

TYPES = 2
"""The number of token types where the config of a model that takes token types names no number."""


def refuse_other(config: Any, task: Task, loader: str) -> None:
    """Raise StepError where the model of `config` cannot do the task; `loader` names the task's transformers class."""
    family = config.model_type
    if config.is_encoder_decoder and not _reads_with_decoder(config, task, loader):
        raise StepError(
            f"{family} has an encoder and a decoder: that is not supported for {task.name}",
            _named(config),
            f"say `task: {_tasks(Generates.REWRITES)}`; or export what you need to ONNX and give the .onnx as source",
        )
    if task.generates is Generates.REWRITES and not config.is_encoder_decoder:
        raise StepError(
            f"{family} has no encoder: it cannot turn one text into another",
            _named(config),
            f"say `task: {_tasks(Generates.CONTINUES)}`" if continues(config) else "choose a model such as T5 or BART",
        )
    if task.generates is Generates.CONTINUES and not continues(config):
        raise StepError(
            f"{family} reads a text as a whole: it cannot continue a text",
            _named(config),
            "choose a model such as GPT-2, OPT or Llama, or a task that this one is made for (`task:` under `model:`)",
        )
    if not _has_class(config, loader):
        raise StepError(f"transformers has no {family} for {task.name}", _named(config), "choose another task or model")


def model_class(config: Any, loader: str) -> type:
    """Return the class of the model that the transformers class `loader` loads for `config`."""
    import transformers

    kind: Any = getattr(transformers, loader)
    classes = kind._model_mapping[type(config)] if hasattr(kind, "_model_mapping") else kind  # noqa: SLF001 - transformers has no public name for it
    chosen: type = classes[0] if isinstance(classes, list | tuple) else classes
    return chosen


def refuse_without_padding(model: Any, task: Task) -> None:
    """Raise StepError for a classifier that reads the last token of a row and has no id of a padding token.

    A classifier without the padding token's id would read padding as the last token of the row.
    """
    config = model.config
    pad = getattr(config.get_text_config(), "pad_token_id", None)  # of a model of several modalities, that of its text
    if task.classes is Classes.ROWS and continues(config) and pad is None:
        raise StepError(
            f"{type(model).__name__} classifies a text by its last token, and cannot tell that token from padding",
            ["config.json has no pad_token_id"],
            "name the token that texts are filled up with, as `pad_token_id` in config.json",
        )


def continues(config: Any) -> bool:
    """Whether the model is a decoder-only model, which continues texts.

    A family with a class for filling masks, such as BERT, counts as decoder-only where config.json sets `is_decoder`,
    and not otherwise.
    """
    if config.is_encoder_decoder or not _has_class(config, "AutoModelForCausalLM"):
        return False
    return bool(getattr(config, "is_decoder", False)) or not _has_class(config, "AutoModelForMaskedLM")


def _reads_with_decoder(config: Any, task: Task, loader: str) -> bool:
    """Whether a model with an encoder and a decoder can do a task. A detector's decoder reads no texts.

    Such a model can turn one text into another. It can give a class or a span of a text where transformers has a class
    for that, whose `forward` makes the decoder's tokens from the text. The encoder alone may give hidden states.
    """
    if task.takes_images or task.generates is Generates.REWRITES or loader == task.encoder_class:
        return True
    return (task.classes is not None or task.context) and _has_class(config, loader)


def _tasks(generates: Generates) -> str:
    """Return, as one text, the names of the tasks whose models generate text in the way `generates`."""
    return tasks.either(lambda task: task.generates is generates)


def _has_class(config: Any, loader: str) -> bool:
    import transformers

    return type(config) in getattr(getattr(transformers, loader), "_model_mapping", [type(config)])


def _named(config: Any) -> list[str]:
    return [f"config.json has architectures: {', '.join(config.architectures or ()) or 'none'}"]


def input_names(model: Any, tokenizer: OwnTokenizer | None) -> tuple[str, ...]:
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
