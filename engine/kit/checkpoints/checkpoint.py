"""Checkpoint directories: their layout, config, task, length limit, inputs and tokenizer file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import exportable, json_files, model_inputs, sentences
from engine.tasks import TENSORS, Task, heads

_OFFSET_POSITIONS = frozenset(
    {
        "camembert", "data2vec-text", "esm", "ibert", "layoutlmv3", "lilt", "longformer", "luke", "markuplm", "mpnet",
        "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
    }
)  # fmt: skip
"""Values of `model_type` whose models count positions from `pad_token_id + 1` and never use the positions before it."""

IMAGES = "images"
"""The name of the only input of a timm model in the exported graph."""

LABELS = "labels.json"
"""The file beside an ONNX file with the names that the recipe gives to the classes, as `id2label`."""

TOKENIZER = "tokenizer.json"
"""The file that holds the whole tokenizer of a checkpoint."""
_TOKENIZERS = (
    "tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model",
)  # fmt: skip
"""Files of which at least one is there where a checkpoint has a tokenizer without `TOKENIZER`."""

GENERIC = frozenset({"PreTrainedTokenizerFast", "TokenizersBackend"})
"""The classes of tokenizers that have token types and special tokens only where tokenizer_config.json names them."""
_TWO_TYPES = frozenset({"albert", "bert", "electra"})
"""Values of `model_type` whose models have two token types where config.json has no `type_vocab_size`."""
_OF_ONE_LENGTH = "siglip_text_model"
"""The `model_type` of a tower of texts that takes texts of one length, as it was trained with padding to it."""
_FILES = ("tokenizer_config.json", "processor_config.json", "preprocessor_config.json")


def kind(checkpoint: Path) -> Literal["transformers", "onnx", "timm"]:
    """Return the layout of a checkpoint directory: `transformers`, `onnx` or `timm`.

    Raises StepError where the directory has neither an ONNX file nor config.json.
    """
    if (checkpoint / "model.onnx").is_file():
        return "onnx"
    fields = config(checkpoint)
    return "timm" if "architecture" in fields and "model_type" not in fields else "transformers"


def config(checkpoint: Path) -> dict[str, Any]:
    """Return the content of `config.json`; of an ONNX file the names of its classes, where the recipe names them.

    Raises StepError where config.json is missing or no JSON object, or where its `model_type` is not a string.
    """
    if (checkpoint / "model.onnx").is_file():
        return json_files.settings(checkpoint / LABELS)
    path = checkpoint / "config.json"
    if not path.is_file():
        raise StepError(
            "the model has no config.json",
            ["without it nobody can tell which architecture the weights belong to"],
            "save the model with save_pretrained(), or name an .onnx file as the source",
        )
    fields = json_files.load(path)
    if not isinstance(fields, dict):
        raise StepError(f"config.json holds a {type(fields).__name__}, not a JSON object", hint="save the model again")
    if not isinstance(fields.get("model_type"), str | None):
        raise StepError(
            "the model_type in config.json is no name", [repr(fields["model_type"])[:80]], "save the model again"
        )
    return fields


def timm_config(checkpoint: Path) -> dict[str, Any]:
    """Return timm's `pretrained_cfg`: an object in a newer config.json, or the whole of an older config.json."""
    fields = config(checkpoint)
    nested: dict[str, Any] = fields.get("pretrained_cfg", fields)
    return nested


def task(checkpoint: Path, requested: str | None) -> str:
    """Return the name of the model's task: the one that the recipe requests, else the one that config.json names.

    The task of a plain ONNX file is "tensors" by default. Raises StepError where neither the recipe nor config.json
    names a task, or where the checkpoint's layout does not allow the task.
    """
    if requested is not None:
        _refuse_unsupported(requested, "the recipe asks for it", checkpoint)
        _refuse_untrained(requested, checkpoint)
        return requested
    refuse_other_kind(checkpoint, str(checkpoint))
    named = own_task(checkpoint)
    if named is None:
        raise StepError(
            "the model does not say what it is for",
            [_because(checkpoint), f"supported: {', '.join(_of_transformers())}"],
            _possible_task(checkpoint),
        )
    if named != TENSORS.name:
        _refuse_unsupported(named, _because(checkpoint), checkpoint)
    return named


def refuse_other_kind(checkpoint: Path, name: str) -> None:
    """Raise StepError for a model of transformers that takes more than texts, and names no task that is supported.

    `name` is the model as transformers loads it: a directory, or a repository of the hub.
    """
    task = tasks.known(own_task(checkpoint) or "")
    fields = config(checkpoint)
    supported = task is not None and task.auto_class is not None and (not task.takes_images or takes_images(fields))
    if kind(checkpoint) != "transformers" or supported:
        return  # a step that goes on does not read the table, which is no part of its key
    declared = model_inputs.declared(fields) or ("", {})
    if inputs := exportable.beyond_text(fields) or tuple(name for name in declared[1] if name in exportable.KINDS):
        kinds = [*(exportable.KINDS[each] for each in inputs), *(["texts"] if "text_config" in fields else [])]
        named = architecture(checkpoint) or fields["model_type"]
        raise StepError(
            f"{named} takes {' and '.join(dict.fromkeys(kinds))}, and does none of the tasks that are supported",
            [_because(checkpoint), f"its inputs: {', '.join(inputs)}", f"supported: {', '.join(_of_transformers())}"],
            exportable.own_export(fields, name),
        )


def takes_images(fields: Mapping[str, Any]) -> bool:
    """Whether a model with this config.json takes images, as far as the source of transformers tells."""
    declared = model_inputs.declared(fields)
    return declared is None or "pixel_values" in declared[1]


def refuse_unnamed(checkpoint: Path, name: str, *, images: bool) -> None:
    """Raise StepError for a model with the task `name` where the recipe does not say that it takes images (`images`).

    The key of a job needs the versions of the libraries for images before the job reads the checkpoint.
    """
    task = tasks.known(name)
    if not images and task is not None and task.takes_images:
        raise StepError(
            f"the checkpoint is a model for {name}, and the recipe does not say so",
            [_because(checkpoint)],
            f"say `task: {name}` under `model:`",
        )


def refuse_other_library(checkpoint: Path, library: str) -> None:
    """Raise StepError where another library than `library` loads the checkpoint."""
    own = kind(checkpoint)
    if own not in ("onnx", library):
        raise StepError(
            f"the checkpoint is one of {own}, and the recipe does not say so",
            [_because(checkpoint)],
            f"say `library: {own}` under `model:`",
        )


def own_task(checkpoint: Path) -> str | None:
    """Return the name of the task that the checkpoint's own files name, even if unsupported; None if they name none."""
    layout = kind(checkpoint)
    if layout == "onnx":
        return TENSORS.name
    if layout == "timm":
        return heads.TIMM
    fields = config(checkpoint)
    return heads.named(
        _architectures(fields),
        encoder_decoder=bool(fields.get("is_encoder_decoder")),
        vocabulary=_reads_tokens(fields),
        sentences=sentences.has_pooling(checkpoint),
    )


def architecture(checkpoint: Path) -> str | None:
    """Return the name of the class that config.json names first in `architectures`; None where it names none."""
    return next(iter(_architectures(config(checkpoint))), None)


def text_config(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of config.json about a model of texts: those of `text_config` in a model of several kinds."""
    nested = fields.get("text_config")
    return nested if isinstance(nested, dict) else fields


def max_sequence(checkpoint: Path) -> int | None:
    """Return the largest number of tokens that the position embeddings allow; None where the config names no limit.

    RoBERTa and similar models begin to count positions after the padding token's id, so `pad_token_id + 1` of their
    `max_position_embeddings` positions are never used (`create_position_ids_from_input_ids` in transformers).
    """
    fields = text_config(config(checkpoint))
    limit = fields.get("max_position_embeddings", fields.get("n_positions"))
    if fields.get("model_type") == "t5" or not isinstance(limit, int) or limit <= 0:
        return None
    if fields.get("model_type") not in _OFFSET_POSITIONS:
        return limit
    padding = 1 if fields["model_type"] == "mpnet" else fields.get("pad_token_id")
    return limit - (padding if isinstance(padding, int) else 1) - 1


def axes(checkpoint: Path) -> dict[str, list[int | str]]:
    """Return the name of each input of a transformers or timm model -> its extents or axis names in the exported graph.

    The result is {} for a transformers model whose config.json has no `vocab_size` of a model of texts:
    `kit/reference/image_inputs.axes` tells the inputs of a model of images, and of a tower of texts of one length.
    """
    fields = config(checkpoint)
    if kind(checkpoint) == "timm":
        return {IMAGES: ["batch", *timm_config(checkpoint).get("input_size", [3, "height", "width"])]}
    if not _reads_tokens(fields) or fields.get("model_type") == _OF_ONE_LENGTH:
        return {}
    types = fields.get("type_vocab_size", 2 if fields.get("model_type") in _TWO_TYPES else 0)
    if not _gives_token_types(checkpoint):
        types = 0
    return {name: ["batch", "sequence"] for name in token_inputs(types if isinstance(types, int) else 0)}


def token_inputs(types: int) -> tuple[str, ...]:
    """Return the names of the inputs of a text model with `types` token types.

    `token_type_ids` is an input only of a model with two token types or more; RoBERTa, for example, has one token type.
    """
    return ("input_ids", "attention_mask", *(["token_type_ids"] if types > 1 else []))


def tokenizer_file(checkpoint: Path) -> Path | None:
    """Return the path of `tokenizer.json`, which holds the whole tokenizer; None where there is no such file."""
    path = checkpoint / TOKENIZER
    return path if path.is_file() else None


def has_tokenizer(checkpoint: Path) -> bool:
    """Tell whether a directory has files from which transformers may make a tokenizer."""
    return any((checkpoint / name).is_file() for name in (TOKENIZER, *_TOKENIZERS))


def _reads_tokens(fields: Mapping[str, Any]) -> bool:
    """Whether config.json is that of a model of texts; the `vocab_size` of BEiT, say, counts kinds of patches."""
    return "vocab_size" in fields and "image_size" not in fields


def _gives_token_types(checkpoint: Path) -> bool:
    """Whether the checkpoint's tokenizer gives token types, as far as its files tell; True where they do not tell."""
    settings = json_files.settings(checkpoint / "tokenizer_config.json")
    names = settings.get("model_input_names")
    if isinstance(names, list):
        return "token_type_ids" in names
    return settings.get("tokenizer_class") not in GENERIC


def _architectures(fields: Mapping[str, Any]) -> list[str]:
    names = fields.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _because(checkpoint: Path) -> str:
    """Return a text for an error: the entry of config.json that names the model's architecture."""
    fields = config(checkpoint)
    if kind(checkpoint) == "timm":
        return f"config.json is timm's, architecture {fields['architecture']}"
    return f"config.json has architectures: {', '.join(_architectures(fields)) or 'none'}"


def _refuse_unsupported(name: str, because: str, checkpoint: Path) -> None:
    """Raise StepError where the checkpoint's layout does not allow the task `name`; `because` tells who named it."""
    task = tasks.known(name)
    if tasks.generates(name) and kind(checkpoint) != "transformers":
        raise StepError(
            f"{name} needs a model of transformers",
            [because, "an .onnx file does not tell which of its tensors are the past"],
            "give the checkpoint as the source: `export` writes the model with its past",
        )
    if task is None or (kind(checkpoint) == "transformers" and not _may_do(task, config(checkpoint))):
        raise StepError(
            f"the task {name} is not supported yet",
            [because, f"supported: {', '.join(_of_transformers())}"],
            _possible_task(checkpoint),
        )


def _may_do(task: Task, fields: Mapping[str, Any]) -> bool:
    """Whether transformers has a class for a task, and for a task of images the model takes images."""
    return task.auto_class is not None and (not task.takes_images or takes_images(fields))


def _refuse_untrained(name: str, checkpoint: Path) -> None:
    """Raise StepError where a model with a classifying head is to generate text.

    transformers makes a head that generates text of the model's embeddings, and so does not miss its weights.
    """
    if not tasks.generates(name):
        return  # the key of a job has the code of the recipe's task alone, so no other task may be read
    own = tasks.known(own_task(checkpoint) or "")
    if own is not None and (own.classes is not None or own.context):
        raise StepError(
            f"the model was made for {own.name}: it has no head that was trained for {name}",
            [_because(checkpoint)],
            f"say `task: {own.name}` under `model:`",
        )


def _possible_task(checkpoint: Path) -> str:
    """Return the hint for a checkpoint whose task is unknown or unsupported: a task that works, or an own export.

    A model that reads images or sound works for no task. Any other model can give hidden states, without a head.
    """
    model_type = str(config(checkpoint).get("model_type"))
    if model_type not in exportable.rows():
        return "say `task:` under `model:` in the recipe"
    works, headless = exportable.tasks_of(model_type), exportable.headless(model_type)
    if not works and architecture(checkpoint) is not None:
        return exportable.own_export(config(checkpoint), str(checkpoint))
    if not works:
        return "say `task:` under `model:` in the recipe"
    behind = ", or the task of the model's head" if headless else ""
    return f"say `task: {' or '.join(headless or works)}` under `model:`{behind}"


def _of_transformers() -> list[str]:
    return [task.name for task in tasks.every() if task.auto_class is not None]


def refuse_own_code(checkpoint: Path) -> None:
    """Raise StepError where the checkpoint says that code of its own turns texts into the model's inputs."""
    for name in _FILES:
        if json_files.settings(checkpoint / name).get("auto_map"):
            raise StepError(
                "the checkpoint's own code makes the model's inputs, and that code is never run (trust_remote_code)",
                [f"{name} has auto_map"],
                "save a tokenizer of the library tokenizers, and name its directory as `tokenizer` beside `source`",
            )
