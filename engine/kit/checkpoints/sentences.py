"""Sentences: what a sentence-transformers model does with a text, its hidden states and its logits, by its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine.errors import StepError
from engine.kit.checkpoints import json_files

Pooling = Literal["mean", "cls", "max"]
"""The ways of pooling that `kit/accuracy/outputs.py` computes, for the comparison with the original."""

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
"""All modes of sentence-transformers' Pooling module, in the order in which it joins them (`modules/pooling.py`)."""
_SWITCHES = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""Each pooling mode -> the field of an older Pooling config that switches the mode on."""
_DEFAULT_FOLDER = "1_Pooling"
"""The name of the Pooling module's folder where `modules.json` names no folder."""


_SETTINGS = "config_sentence_transformers.json"
_ACTIVATIONS = ("GELU", "Identity", "ReLU", "SiLU", "Sigmoid", "Tanh")
"""The functions behind a Dense module that a package computes, by the names of torch's classes."""
_VECTOR = "sentence_embedding"
"""What sentence-transformers calls the vector of a text."""
_AS_STATES = (
    "export the model to ONNX with all its modules, and give the .onnx file; or save its Transformer module alone, "
    "which gives hidden states"
)


@dataclass(frozen=True)
class VectorLayer:
    """A module behind the pooling: `kind` is Dense, LayerNorm or Normalize, `folder` holds its weights."""

    kind: str
    folder: str = ""
    activation: str = "Identity"
    """The function behind a Dense module, by the name of torch's class."""
    residual: bool = False
    """Whether a Dense module adds its input to its output."""


NORMALIZE = VectorLayer("Normalize")


@dataclass(frozen=True)
class Sentences:
    """The modes by which hidden states are pooled into one vector, and what happens to the vector afterwards."""

    modes: tuple[str, ...]
    layers: tuple[VectorLayer, ...] = ()
    truncate_dim: int | None = None
    """How many numbers of the vector are kept; None for all."""
    skips_prompt: bool = False
    """Whether the tokens of a prompt are left out of the pooling."""


def load(checkpoint: Path) -> Sentences | None:
    """Return how the checkpoint's modules make one vector of a text; None for no sentence-transformers checkpoint.

    Raises StepError.
    """
    modules = _modules(checkpoint)
    if not modules:
        return None
    kinds = [kind for kind, _ in modules]
    if kinds[:2] != ["Transformer", "Pooling"]:
        raise unsupported(f"modules.json has {', '.join(kinds)}")
    pooling = json_files.settings(_pooling_config(checkpoint))
    modes = _modes(pooling)
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown:
        raise unsupported(f"its pooling mode is {', '.join(unknown)}")
    behind = [module for module in modules[2:] if module[0] != "Dropout"]  # which does nothing outside training
    layers = tuple(_layer(checkpoint, kind, folder, kinds) for kind, folder in behind)
    truncate = _settings(checkpoint).get("truncate_dim")
    skips = pooling.get("include_prompt") is False and bool(prompt(checkpoint))
    return Sentences(modes, layers, truncate if isinstance(truncate, int) else None, skips_prompt=skips)


def prompt(checkpoint: Path) -> str:
    """Return the text that stands in front of each text, or of the first of a pair; "" where there is none."""
    settings = _settings(checkpoint)
    prompts, name = settings.get("prompts"), settings.get("default_prompt_name")
    text = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
    return text if isinstance(text, str) else ""


def choose(checkpoint: Path, *, prompt: str | None, truncate_dim: int | None) -> bytes:
    """Return the settings of sentence-transformers with a prompt and a length of the vector that a recipe names.

    Raises StepError for a prompt that the model does not have, and where the model makes no vector of a text.
    """
    settings = _settings(checkpoint)
    if prompt is not None:
        prompts = settings.get("prompts")
        if not isinstance(prompts, dict) or prompt not in prompts:
            raise StepError(
                f"the model has no prompt called {prompt!r}",
                [f"the prompts in {_SETTINGS}: {', '.join(prompts or ()) or 'none'}"],
                "name one of them, or leave `model.prompt` out",
            )
        settings["default_prompt_name"] = prompt
    if truncate_dim is not None:
        if load(checkpoint) is None or not (checkpoint / "modules.json").is_file():
            raise StepError(
                "the model makes no sentence embedding, so that `model.truncate_dim` has no meaning",
                ["it has no modules.json of sentence-transformers"],
                "leave `model.truncate_dim` out",
            )
        settings["truncate_dim"] = truncate_dim
    return json.dumps(settings, indent=2).encode()


def apply(out: Path, *, prompt: str | None, truncate_dim: int | None) -> None:
    """Write the choices of a recipe (`choose`) into a checkpoint. Raises StepError as `choose` does."""
    if prompt is not None or truncate_dim is not None:
        content = choose(out, prompt=prompt, truncate_dim=truncate_dim)
        (out / _SETTINGS).unlink(missing_ok=True)  # the file may be a link to the user's own
        (out / _SETTINGS).write_bytes(content)


def activation(checkpoint: Path, config: Mapping[str, Any], classes: int) -> str | None:
    """Return the name of torch's class of the function that a CrossEncoder applies to its logits.

    The name is None for a checkpoint that is none of a CrossEncoder. `config` is the content of config.json. As in
    `CrossEncoder.predict`, code of the checkpoint's own never runs, and the default takes its place.
    """
    settings, own = _settings(checkpoint), config.get("sentence_transformers")
    older = config.get("sbert_ce_default_activation_function")
    if settings.get("model_type") != "CrossEncoder" and not isinstance(own, dict) and older is None:
        return None
    newer = own.get("activation_fn") if isinstance(own, dict) else older
    for path in (settings.get("activation_fn"), newer):
        if isinstance(path, str) and path.startswith("torch."):
            return path.rpartition(".")[2]
    return "Sigmoid" if classes == 1 else "Identity"


def refuse_other_pairs(checkpoint: Path, config: Mapping[str, Any], classes: int) -> None:
    """Raise StepError for a CrossEncoder with modules of its own, or with a function that no package has."""
    kinds = [kind for kind, _ in _modules(checkpoint)]
    own = activation(checkpoint, config, classes)
    if own is not None and kinds not in ([], ["Transformer"]):
        raise unsupported(f"a CrossEncoder whose modules.json has {', '.join(kinds)}")
    if own not in {None, "Identity", "Sigmoid", "Softmax"}:
        raise unsupported(f"a CrossEncoder whose scores are {own} of the logits")


def has_pooling(checkpoint: Path) -> bool:
    """Whether the checkpoint has the config of a Pooling module, as every sentence-transformers model has."""
    return _pooling_config(checkpoint).is_file()


def pooling(checkpoint: Path) -> Pooling | None:
    """Return the checkpoint's pooling mode: mean, cls or max.

    The pooling mode is None for a checkpoint without a Pooling module, with several modes, or with a mode other than
    mean, cls and max.
    """
    if not has_pooling(checkpoint):
        return None
    match _modes(json_files.settings(_pooling_config(checkpoint))):
        case ("mean" | "cls" | "max" as mode,):
            return mode
        case _:
            return None


def _pooling_config(checkpoint: Path) -> Path:
    """Return the path of the Pooling module's config: in the folder that `modules.json` names, else in `1_Pooling`."""
    folders = [folder for kind, folder in _modules(checkpoint) if kind == "Pooling" and folder]
    return checkpoint / (folders[0] if folders else _DEFAULT_FOLDER) / "config.json"


def _modules(checkpoint: Path) -> list[tuple[str, str]]:
    """Return the kind and the folder of each module that `modules.json` lists.

    A very old sentence-transformers model has no `modules.json` and consists of a Transformer and a Pooling module.
    Raises StepError.
    """
    path = checkpoint / "modules.json"
    listed = json_files.load(path) if path.is_file() else []
    modules = [
        (_kind(str(module.get("type", ""))), Path(str(module.get("path", ""))).name)
        for module in (listed if isinstance(listed, list) else [])
        if isinstance(module, dict)
    ]
    if not modules and (checkpoint / _DEFAULT_FOLDER / "config.json").is_file():
        return [("Transformer", ""), ("Pooling", _DEFAULT_FOLDER)]
    return modules


def _layer(checkpoint: Path, kind: str, folder: str, kinds: list[str]) -> VectorLayer:
    """Return a module behind the pooling. Raises StepError."""
    options = json_files.settings(checkpoint / folder / "config.json") if folder else {}
    if kind not in {"Dense", "LayerNorm", "Normalize"}:
        raise unsupported(f"modules.json has {', '.join(kinds)}")
    named = {options.get(field) or _VECTOR for field in ("module_input_name", "module_output_name")}
    if named != {_VECTOR}:
        raise unsupported(f"{folder}/config.json names other inputs or outputs: {', '.join(sorted(named))}")
    if kind == "Normalize":
        return NORMALIZE
    if not (checkpoint / folder / "model.safetensors").is_file():
        raise unsupported(f"the weights of {folder} are no safetensors: save the model with a newer version")
    if kind == "LayerNorm":
        return VectorLayer(kind, folder)
    function = str(options.get("activation_function", "torch.nn.modules.activation.Tanh"))
    name = function.rpartition(".")[2]
    if not function.startswith("torch.") or name not in _ACTIVATIONS:
        raise unsupported(f"{folder} has the activation {function}")
    return VectorLayer(kind, folder, name, residual=bool(options.get("use_residual")))


def unsupported(fact: str) -> StepError:
    """Return the error for a part of a model that packages do not compute."""
    return StepError("the model has a part of sentence-transformers that is not supported", [fact], _AS_STATES)


def _kind(path: str) -> str:
    """Return the name of a class of sentence-transformers; the whole path of a class of another package."""
    return path.rpartition(".")[2] if path.startswith("sentence_transformers.") else path


def _settings(checkpoint: Path) -> dict[str, Any]:
    """Return the settings, which sentence-transformers reads only beside `modules.json`."""
    return json_files.settings(checkpoint / _SETTINGS) if (checkpoint / "modules.json").is_file() else {}


def _modes(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modes in `pooling_mode` of a Pooling config, or in an older config's switches; the mean by default."""
    named = config.get("pooling_mode")
    if named is not None:
        return tuple(str(mode) for mode in named) if isinstance(named, list) else (str(named),)
    return tuple(mode for mode, switch in _SWITCHES.items() if config.get(switch)) or ("mean",)


def lowercase_first(backend: Any, checkpoint: Path) -> None:
    """Have the tokenizer turn texts into lower case first, if the checkpoint's sentence-transformers config says so."""
    from tokenizers import normalizers

    if json_files.settings(checkpoint / "sentence_bert_config.json").get("do_lower_case"):
        own = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])
