"""Unbuildable: fields of config.json with which an architecture cannot be built, though other values of them work."""

# The table of `exportable` has one small config of each architecture, mostly with the values that transformers gives.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import tasks
from engine.errors import StepError
from engine.kit.checkpoints import alternatives, exportable
from engine.kit.checkpoints import checkpoint as checkpoints

_WITHOUT_KEYS = frozenset({"conv", "hybrid", "hybrid_sliding", "linear_attention", "mamba", "recurrent"})
"""The kinds of layers that keep another state than keys and values (`ALLOWED_ATTN_LAYER_TYPES` of transformers)."""
_LANDMARKS = 64
"""The default of the fields `num_landmarks` and `segment_means_seq_len` of a Nyströmformer."""


def refuse(checkpoint: Path, task: str) -> None:
    """Raise StepError where a field of config.json tells that a transformers model cannot be built for a task."""
    if checkpoints.kind(checkpoint) != "transformers":
        return
    config = checkpoints.config(checkpoint)
    other = _other_layers(config)
    if other and tasks.generates(task):
        raise StepError(
            f"the model does not carry keys and values alone from token to token, and cannot be built for {task}",
            [f"config.json has layers of another kind: {', '.join(other)}"],
            alternatives.nearest(checkpoint, task),
        )
    if config.get("model_type") == "longt5" and config.get("encoder_attention_type") == "transient-global":
        raise StepError(
            "the model's encoder cannot be exported: it reads no text that is shorter than its blocks",
            ['config.json has encoder_attention_type: transient-global; "local" can be built'],
            exportable.OWN_EXPORT,
        )
    length = config.get("segment_means_seq_len", _LANDMARKS)
    if config.get("model_type") == "nystromformer" and config.get("num_landmarks", _LANDMARKS) != length:
        raise StepError(
            f"the model takes texts of exactly {length} tokens, and no others",
            [f"config.json has segment_means_seq_len: {length} and num_landmarks: {config.get('num_landmarks')}"],
            exportable.OWN_EXPORT,
        )


def _other_layers(config: Mapping[str, Any]) -> list[str]:
    """Return the kinds of a decoder's layers that keep another state than keys and values."""
    nested = config.get("text_config")
    kinds = (nested if isinstance(nested, dict) else config).get("layer_types")
    return sorted(_WITHOUT_KEYS.intersection(map(str, kinds))) if isinstance(kinds, list) else []
