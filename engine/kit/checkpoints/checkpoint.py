"""What a checkpoint directory says of itself: its kind, task, length limit and tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import json_files, sentences
from engine.tasks import TENSORS, heads

_OFFSET_POSITIONS = frozenset(
    {
        "camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke", "markuplm", "mpnet",
        "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
    }
)  # fmt: skip
"""Model types that count positions from `pad_token_id + 1`, so that so many of their positions are never used."""

IMAGES = "images"
"""The name of the only input of a timm model, as `export` names it."""

_TWO_TYPES = frozenset({"albert", "bert", "electra"})
"""Model types that have two token types where config.json does not say."""


def kind(checkpoint: Path) -> Literal["transformers", "onnx", "timm"]:
    """Return which of the three layouts the directory has. Raises StepError where it has none of them."""
    if (checkpoint / "model.onnx").is_file():
        return "onnx"
    settings = config(checkpoint)
    return "timm" if "architecture" in settings and "model_type" not in settings else "transformers"


def config(checkpoint: Path) -> dict[str, Any]:
    """Return `config.json`, {} for an ONNX file.

    Raises StepError where it is missing, no JSON object, or names its model type by anything but a text.
    """
    if (checkpoint / "model.onnx").is_file():
        return {}
    path = checkpoint / "config.json"
    if not path.is_file():
        raise StepError(
            "the model has no config.json",
            ["without it nobody can tell which architecture the weights belong to"],
            "save the model with save_pretrained(), or name an .onnx file as the source",
        )
    settings = json_files.load(path)
    if not isinstance(settings, dict):
        raise StepError(
            f"config.json holds a {type(settings).__name__}, not a JSON object", hint="save the model again"
        )
    if not isinstance(settings.get("model_type"), str | None):
        raise StepError(
            "the model_type in config.json is no name", [repr(settings["model_type"])[:80]], "save the model again"
        )
    return settings


def task(checkpoint: Path, asked: str | None) -> str:
    """Return the name of what the model is for: what the recipe asks, else what its `architectures` say.

    A plain ONNX file without a task is for "tensors". Raises StepError where the task is not supported by this version
    or cannot be told.
    """
    if asked is not None:
        _refuse_unsupported(asked, "the recipe asks for it", checkpoint)
        return asked
    said = own_task(checkpoint)
    if said is None:
        raise StepError(
            "the model does not say what it is for",
            [_because(checkpoint), f"supported: {', '.join(_of_transformers())}"],
            "say `task:` under `model:` in the recipe",
        )
    if said != TENSORS.name:
        _refuse_unsupported(said, _because(checkpoint), checkpoint)
    return said


def own_task(checkpoint: Path) -> str | None:
    """Return the name of the task that the model's own files name, supported or not; None where they do not say."""
    layout = kind(checkpoint)
    if layout == "onnx":
        return TENSORS.name
    if layout == "timm":
        return heads.TIMM
    settings = config(checkpoint)
    return heads.named(
        _architectures(settings),
        encoder_decoder=bool(settings.get("is_encoder_decoder")),
        vocabulary="vocab_size" in settings,
        sentences=sentences.has_pooling(checkpoint),
    )


def max_sequence(checkpoint: Path) -> int | None:
    """Return how many tokens the position embeddings have room for; None where there is no limit or none is known.

    RoBERTa and its kin start to count positions behind the padding token's id, so they lose `pad_token_id + 1`
    of `max_position_embeddings` (`create_position_ids_from_input_ids` in transformers).
    """
    settings = config(checkpoint)
    nested = settings.get("text_config")
    settings = nested if isinstance(nested, dict) else settings
    limit = settings.get("max_position_embeddings", settings.get("n_positions"))
    if settings.get("model_type") == "t5" or not isinstance(limit, int) or limit <= 0:
        return None
    if settings.get("model_type") not in _OFFSET_POSITIONS:
        return limit
    padding = 1 if settings["model_type"] == "mpnet" else settings.get("pad_token_id")
    return limit - (padding if isinstance(padding, int) else 1) - 1


def axes(checkpoint: Path) -> dict[str, list[int | str]]:
    """Return the extents or axis names of each input of a transformers or timm model, as `export` will name them.

    `token_type_ids` counts where the model tells more than one type apart: RoBERTa's embedding of types has one row.
    A model that takes no text has none that are known before it is loaded.
    """
    settings = config(checkpoint)
    if kind(checkpoint) == "timm":
        sizes = settings.get("pretrained_cfg", settings).get("input_size", [3, "height", "width"])
        return {IMAGES: ["batch", *sizes]}
    if "vocab_size" not in settings:
        return {}
    types = settings.get("type_vocab_size", 2 if settings.get("model_type") in _TWO_TYPES else 0)
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if isinstance(types, int) and types > 1 else [])]
    return {name: ["batch", "sequence"] for name in names}


def tokenizer_file(checkpoint: Path) -> Path | None:
    """Return `tokenizer.json`, the whole tokenizer in one file, or None."""
    path = checkpoint / "tokenizer.json"
    return path if path.is_file() else None


def _architectures(settings: Mapping[str, Any]) -> list[str]:
    named = settings.get("architectures")
    return [name for name in named if isinstance(name, str)] if isinstance(named, list) else []


def _because(checkpoint: Path) -> str:
    """Return what the model's own files say, in words."""
    settings = config(checkpoint)
    if kind(checkpoint) == "timm":
        return f"config.json is timm's, architecture {settings['architecture']}"
    return f"config.json has architectures: {', '.join(_architectures(settings)) or 'none'}"


def _refuse_unsupported(name: str, because: str, checkpoint: Path) -> None:
    task = tasks.known(name)
    if tasks.generates(name) and kind(checkpoint) != "transformers":
        raise StepError(
            f"{name} needs a model of transformers",
            [because, "an .onnx file does not tell what it carries from call to call"],
            "give the checkpoint as the source; it is exported with its past",
        )
    if task is None or (task.auto_class is None and kind(checkpoint) == "transformers"):
        raise StepError(
            f"the task {name} is not supported yet",
            [because, f"supported: {', '.join(_of_transformers())}"],
            "for another use of the same model say `task:` under `model:`; a model of another kind can be given as an "
            ".onnx file",
        )


def _of_transformers() -> list[str]:
    return [each.name for each in tasks.every() if each.auto_class is not None]
