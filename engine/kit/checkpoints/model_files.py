"""Model files: chooses by name the files that decide what a model computes; a README is not among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from engine.errors import StepError
from engine.text import lists, suggestions

Weights = Literal["safetensors", "pickle-tensors-only"]

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"

_CONFIGS = re.compile(
    r"config\.json|generation_config\.json|(pre)?processor_config\.json"
    r"|modules\.json|config_sentence_transformers\.json|sentence_\w+_config\.json"
    r"|\d+_\w+/(config\.json|model\.safetensors)"
)
_TOKENIZER = re.compile(
    r"tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|added_tokens\.json|normalizer\.json|tekken\.json"
    r"|vocab\.(txt|json|bpe|tsv)|merges\.txt|bpe\.codes|[\w.-]+\.model|[\w.-]+\.spm"
    r"|chat_template\.(jinja|json)|additional_chat_templates/[\w.-]+\.jinja"
)
_LICENSES = re.compile(r"README\.md|(?i:(LICEN[CS]E|NOTICE|COPYING|USE_POLICY)([.-][\w.-]*)?)")
_LISTED = 12
"""The largest number of file names that an error lists."""
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
PICKLE_SHARD = re.compile(r"pytorch_model-\d+-of-\d+\.bin")
_ANY_PICKLE = re.compile(r"pytorch_model.*\.bin|.+\.(pt|pth|ckpt|pkl|pickle)")
_FOLDER = re.compile(r"\d+_\w+|additional_chat_templates")
"""Folders of a model directory that may hold model files: modules of sentence-transformers, and chat templates."""


def listing(directory: Path) -> tuple[list[str], list[Path]]:
    """Return the files of a model directory as sorted relative POSIX paths, and the folders that were searched.

    A subfolder is searched only where its name matches `_FOLDER`. Raises StepError where the directory cannot be read.
    """
    names: list[str] = []
    folders = [directory]
    try:
        for path in directory.iterdir():
            if path.is_file():
                names.append(path.name)
            elif _FOLDER.fullmatch(path.name) and path.is_dir():
                folders.append(path)
                names += [f"{path.name}/{inner.name}" for inner in path.iterdir() if inner.is_file()]
    except OSError as error:
        raise StepError(f"the directory {directory} cannot be read", [str(error.strerror)]) from error
    return sorted(names), sorted(folders)


def of_tokenizer(names: Iterable[str]) -> list[str]:
    """Return those of the file names that belong to a tokenizer, sorted."""
    return sorted(name for name in names if _TOKENIZER.fullmatch(name))


def licenses_of(names: Iterable[str]) -> list[str]:
    """Return those of the file names that say something about a licence, sorted: the model card, and the texts."""
    return sorted(name for name in names if _LICENSES.fullmatch(name))


def tokenizer_at(path: Path) -> list[str]:
    """Return the names of a tokenizer's files in the directory `path`, or the name of the file `path`.

    Raises StepError where `path` holds no tokenizer.
    """
    names = listing(path)[0] if path.is_dir() else [path.name]
    chosen = of_tokenizer(names)
    if not chosen:
        hint = "name a directory with tokenizer.json, or the file tokenizer.json itself"
        raise StepError(f"there is no tokenizer in {path}", [content_line(names)], hint)
    return chosen


def model_at(directory: Path) -> tuple[list[str], list[Path]]:
    """Return the names of a model's files in a directory, and the folders that were searched.

    Raises StepError where the directory holds no model.
    """
    names, folders = listing(directory)
    chosen = of_model(names)
    if not chosen:
        entries = sorted(entry.name for entry in directory.iterdir())
        raise StepError(f"there is no model in {directory}", [content_line(entries)], _nearest_model(entries))
    return chosen, folders


def of_model(names: Iterable[str]) -> list[str]:
    """Return the sorted names of the files that decide what a model computes: configs, tokenizer and weights."""
    names = list(names)
    configs = {name for name in names if _CONFIGS.fullmatch(name)}
    return sorted(configs | set(of_tokenizer(names)) | set(weights_of(names)))


def weights_of(names: Iterable[str]) -> list[str]:
    """Return the names of the weight files that transformers would load; pickles only without any safetensors."""
    names = sorted(names)
    for single, index, shard in ((WEIGHTS, INDEX, _SHARD), (PICKLE, PICKLE_INDEX, PICKLE_SHARD)):
        if single in names:
            return [single]
        if index in names:
            return [index, *(name for name in names if shard.fullmatch(name))]
    return []


def refuse_incomplete(names: Sequence[str], *, weights: Weights, where: str) -> None:
    """Raise StepError where the files lack weights or config.json, or where the recipe does not allow pickled weights.

    `where` names the directory or the hub's repository in the error.
    """
    chosen = weights_of(names)
    if chosen and "adapter_config.json" in names:
        raise StepError(
            f"{where} has an adapter beside the weights of a whole model",
            ["adapter_config.json names it; transformers loads it onto the weights, and a build would leave it out"],
            "merge it: model.merge_and_unload() of peft, and save the result; or remove adapter_config.json",
        )
    if chosen and "config.json" not in names:
        raise StepError(
            f"{where} has no config.json",
            [content_line(names)],
            "without it nobody knows which architecture the weights belong to: save the model with save_pretrained()",
        )
    if chosen and chosen[0] in {PICKLE, PICKLE_INDEX}:
        if weights != "pickle-tensors-only":
            raise _only_pickles(where, chosen)
        return
    if not chosen:
        raise _no_weights(names, where)


def _nearest_model(entries: Sequence[str]) -> str:
    """Return the hint for a directory without a model; `entries` are the names of its files and folders."""
    onnx = next((name for name in entries if name.endswith(".onnx")), None)
    if onnx is not None:
        return f"name the file itself: `source: .../{onnx}`"
    if any(name.endswith(".gguf") for name in entries):
        return suggestions.FROM_GGUF
    return "name the directory that holds config.json and the weights, or an .onnx file"


def _only_pickles(where: str, pickles: Sequence[str]) -> StepError:
    """Return the error that refuses a model whose only weights are pickles."""
    return StepError(
        f"{where} has its weights only as a pickle",
        [f"found: {', '.join(pickles[:6])}", "loading a pickle can run any code that its author put there"],
        "say `weights: pickle-tensors-only` under `model:` to convert it once with torch's loader that admits nothing "
        "but tensors, or save the model with save_pretrained(path, safe_serialization=True)",
    )


def _no_weights(names: Sequence[str], where: str) -> StepError:
    """Return the error for a directory without weights that transformers can load, with a hint that suits its files."""
    pickles = [name for name in names if _ANY_PICKLE.fullmatch(name.rpartition("/")[2])]
    onnx = [name for name in names if name.endswith(".onnx")]
    modules = [name.partition("/")[0] for name in names if re.fullmatch(r"\d+_Transformer/config\.json", name)]
    if "adapter_config.json" in names:
        what, hint = f"{where} is an adapter, not a whole model", "merge it into its base model and save that"
    elif modules:
        what = f"{where} keeps its weights in the folder {modules[0]}, as old sentence-transformers did"
        hint = f"save it once with a newer sentence-transformers; or name the folder: `source: .../{modules[0]}`"
    elif onnx:
        what = f"{where} has its weights only as ONNX"
        hint = f"name the file itself: `source: .../{onnx[0]}`, with the directory as `tokenizer:`"
    elif pickles and PICKLE not in names:
        what = f"{where} has its weights only as a pickle, under a name that transformers does not read"
        hint = "load it where it comes from and save it with save_pretrained(path, safe_serialization=True)"
    else:
        what = f"{where} has no weights"
        hint = f"the weights are {WEIGHTS}, or {INDEX} with its parts: save the model with save_pretrained()"
    return StepError(what, [content_line(names)], hint)


def content_line(names: Sequence[str]) -> str:
    """Return a line for an error: the names of the first files of a directory, and the number of its further files."""
    return f"it holds: {lists.first_of(names, _LISTED) or 'nothing'}"
