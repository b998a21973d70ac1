"""Unbuildable: checkpoints that cannot be built, by fields of config.json, and the nearest alternative that can."""

# The table of `exportable` has one small config of each architecture, mostly with the values that transformers gives.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable

_WITHOUT_KEYS = frozenset({"conv", "hybrid", "hybrid_sliding", "linear_attention", "mamba", "recurrent"})
"""The kinds of layers that keep another state than keys and values (`ALLOWED_ATTN_LAYER_TYPES` of transformers)."""
_FNET = "tpu_short_seq_length"
_LANDMARKS = 64
"""The default of the fields `num_landmarks` and `segment_means_seq_len` of a Nyströmformer."""


def refuse(checkpoint: Path, task: str) -> None:
    """Raise StepError where a field of config.json tells that a transformers model cannot be built for a task."""
    if checkpoints.kind(checkpoint) != "transformers":
        return
    config = checkpoints.config(checkpoint)
    kinds = checkpoints.text_config(config).get("layer_types")
    other = sorted(_WITHOUT_KEYS.intersection(map(str, kinds))) if isinstance(kinds, list) else []
    if other and tasks.generates(task):
        raise StepError(
            f"the model does not carry keys and values alone from token to token, and cannot be built for {task}",
            [f"config.json has layers of another kind: {', '.join(other)}"],
            alternative(checkpoint, task),
        )
    if (reason := _reason(config)) is not None:
        raise StepError(*reason, exportable.OWN_EXPORT)


def _reason(config: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """Return why an architecture cannot be built for any task, and the field of config.json that tells; or None."""
    landmarks, length = (config.get(name, _LANDMARKS) for name in ("num_landmarks", "segment_means_seq_len"))
    match config.get("model_type"):
        case "falcon" if config.get("alibi"):
            return "the model's positions (ALiBi) cannot be exported", ["config.json has alibi: true"]
        case "fnet" if config.get("use_tpu_fourier_optimizations"):
            fact = f"config.json has use_tpu_fourier_optimizations, and tpu_short_seq_length: {config.get(_FNET, 512)}"
            return "the model takes texts of one number of tokens, and no others", [fact]
        case "longt5" if config.get("encoder_attention_type") == "transient-global":
            fact = 'config.json has encoder_attention_type: transient-global; "local" can be built'
            return "the model's encoder cannot be exported: it reads no text that is shorter than its blocks", [fact]
        case "nystromformer" if landmarks != length:
            fact = f"config.json has segment_means_seq_len: {length}, and another number of num_landmarks: {landmarks}"
            return f"the model takes texts of exactly {length} tokens, and no others", [fact]
        case "yoso" if config.get("use_expectation") is False:
            fact = "config.json has use_expectation: false"
            return "the model's attention hashes by code for NVIDIA GPUs, which no exporter can write", [fact]
    return None


def alternative(checkpoint: Path, task: str) -> str:
    """Return a hint: other tasks that the checkpoint itself can do, other architectures, or an export by the user.

    Any checkpoint can give hidden states. Every other task needs the weights of its head, so a hint names only the task
    that the checkpoint was trained for.
    """
    config = checkpoints.config(checkpoint)
    model_type = config.get("model_type")
    own = checkpoints.own_task(checkpoint)
    works = exportable.tasks_of(model_type) if isinstance(model_type, str) else []
    usable = [name for name in works if name != task and name in {own, *exportable.headless(str(model_type))}]
    proposals = [f"say `task: {' or '.join(usable)}` under `model:`"] if usable else []
    if others := exportable.others(task):
        proposals.append(f"choose a model of another architecture, such as {', '.join(others)}")
    return "; or ".join([*proposals, exportable.own_export(config, str(checkpoint))])


def refuse_quantized(checkpoint: Path) -> None:
    """Raise StepError where config.json says that the weights are quantized: a recipe quantizes weights in full."""
    settings = checkpoints.config(checkpoint).get("quantization_config")
    if isinstance(settings, dict):
        method = settings.get("quant_method")
        raise StepError(
            "the weights of the checkpoint are already quantized" + (f" ({method})" if method else ""),
            ["config.json has quantization_config"],
            "name the checkpoint that it was quantized from as `source`, and let the recipe's `precision` quantize it",
        )
