"""Optimum: the options of an optimum-cli command as fields of a recipe, and those that no field stands for."""

# Source of the options: `optimum-cli export onnx --help`, `export openvino --help` and `onnxruntime quantize --help`.

from __future__ import annotations

import os

from engine.drafts import foreign
from engine.drafts.foreign import Foreign
from engine.errors import UsageError
from engine.recipe import other_tools
from engine.tasks import registry

TOOL = "optimum-cli"
_VALUED = {
    "-m": "--model", "--model": "--model", "--onnx_model": "--model", "--task": "--task", "--revision": "--revision",
    "--opset": "--opset", "--optimize": "--optimize", "--device": "--device", "--dtype": "--dtype", "--atol": "--atol",
    "--weight-format": "--weight-format", "--framework": "--framework", "--library": "--library",
    "--cache_dir": "--cache_dir", "--pad_token_id": "--pad_token_id", "--batch_size": "--batch_size",
    "--sequence_length": "--sequence_length", "--variant": "--variant", "--dataset": "--dataset", "--ratio": "--ratio",
    "--group-size": "--group-size", "--quant-mode": "--quant-mode", "-o": "--output", "--output": "--output",
    "-c": "--config", "--config": "--config", "--num-samples": "--num-samples", "--quantize": "--quantize",
}  # fmt: skip
_ISAS = {"--avx2": "avx2", "--avx512": "avx512", "--avx512_vnni": "avx512_vnni"}
_PAST = "-with-past"
_EXPORT = "`recipe` chooses how a model is exported, and says it in `recipe logs RECIPE export`"
_LOWER = "a lower precision than fp32 is computed on GPUs: --device T4, and `precision: fp16`"
_SIZES = (
    "sizes are profiles, `profiles: [{batch: [1, 8, 32], sequence: [1, 128, 512]}]`; those of tracing do not matter"
)
_FOLDER = "packages lie in build/NAME; `recipe build RECIPE.yaml -o DIR` names another folder"
_REASONS = {
    "": _FOLDER,
    "--output": _FOLDER,
    "--device": "name the GPU: recipe new ... --device T4",
    "--task": "recipes have no such task: see docs/tasks.md",
    **dict.fromkeys(("--dtype", "--fp16", "--bf16"), _LOWER),
    **dict.fromkeys(("--batch_size", "--sequence_length"), _SIZES),
    "--opset": _EXPORT,
    "--framework": _EXPORT,
    "--library": _EXPORT,
    "--monolith": _EXPORT,
    "--no-post-process": _EXPORT,
    "--variant": _EXPORT,
    "--trust-remote-code": "code of a model never runs; export it to ONNX, and name the file",
    "--optimize": "the step `fuse` always optimizes the graph, and `validate` measures what that changes",
    "--cache_dir": "HF_HOME names the cache of the hub",
    "--pad_token_id": "the tokenizer says it",
    "--dataset": "int8 is calibrated on samples: `calibrate: {samples: FILE}`",
    "--num-samples": "`calibrate.limit` says how many samples are read",
    "--per_channel": "it is always so",
    "--arm64": "`target.isa` names instructions of x86 only; a build on the machine itself needs no name",
    "--tensorrt": "for TensorRT, `target: {device: T4, runtime: tensorrt}`",
    "--config": "settings of ORTConfig have no field",
}


def read(text: str) -> Foreign:
    """Return the settings of an optimum-cli command. Raises UsageError for text that is none, or without a model."""
    command = foreign.words(text, TOOL)
    kind = [word for word in command[:2] if not word.startswith("-")]
    runtime = {"export onnx": "onnxruntime", "export openvino": "openvino"}.get(" ".join(kind))
    if runtime is None and kind[:1] != ["onnxruntime"]:
        known = "optimum-cli export onnx, export openvino, onnxruntime quantize and onnxruntime optimize are read"
        raise UsageError(f"this command of optimum-cli is not read: {' '.join(kind)}", hint=known)
    settings = Foreign(TOOL, device="cpu")
    settings.put("target.runtime", runtime or "onnxruntime", " ".join(kind))
    for name, value, written in foreign.options(command[len(kind) :], _VALUED):
        if not _put(settings, name, value, written):
            settings.leave(written, _reason(name, value))
    if settings.model is None:
        raise UsageError("the command names no model", [text[:200]], "--model OWNER/NAME")
    if kind == ["onnxruntime", "quantize"]:
        settings.put("precision", "int8", " ".join(kind))
    return settings


def _put(settings: Foreign, name: str, value: str, written: str) -> bool:
    """Set the field of an option; false for an option without one."""
    match name:
        case "--model":
            settings.model = value
        case "--task":
            return _put_task(settings, value, written)
        case "--revision":
            settings.put("model.revision", value, written)
        case "--atol" if _is_number(value):
            settings.put("validate.max_abs", float(value), written)
        case "--weight-format" if value in ("fp32", "int8"):
            settings.put("precision", value, written)
            if value == "int8":
                settings.leave("weights alone in int8", "`recipe` quantizes weights and activations for openvino")
        case "--avx2" | "--avx512" | "--avx512_vnni":
            settings.put("target.isa", _ISAS[name], written)
        case _:
            return False
    return True


def _put_task(settings: Foreign, value: str, written: str) -> bool:
    """Set the task; Optimum's ending `-with-past` says how a model is exported. `auto` leaves it to the model."""
    names = list(registry.names())
    task = value.removesuffix(_PAST)
    meant = task if task in names else other_tools.meant(task, names)
    if meant is None:
        return False
    settings.put("model.task", meant, written)
    return True


def _reason(name: str, value: str) -> str | None:
    """Return why no field stands for an option; None where nothing is known of it."""
    if name == "--weight-format":
        return f"openvino is built in fp32 and int8 here, not in {value}"
    if name == "--task" and value == "auto":
        return "without a task, the model's files name it"
    if name == "--device" and value == "cpu":
        return "CPUs are the target of this recipe"
    return _REASONS.get(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def source(model: str) -> str:
    """Return a model of Optimum as `recipe new` takes it: a directory that is there, or a repository of the hub."""
    return model if os.path.exists(model) or model.startswith((".", "/", "~")) else f"hf:{model}"
