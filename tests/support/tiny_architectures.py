"""Makers of tiny random checkpoints of any architecture of transformers: configs are shrunk by the names of fields."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import models

_TOKENS = {"pad": 0, "unk": 1, "bos": 2, "cls": 2, "decoder_start": 2, "eos": 3, "sep": 3, "mask": 4}
"""The ids of special tokens in `models.vocabulary`, by the first word of the field's name."""
_LAYERS = re.compile(
    r"num_(encoder_|decoder_)?(hidden_|block_)?layers|(encoder|decoder)_layers|n_layers?|depth|num_blocks|num_hidden_groups"
)
_HEADS = re.compile(
    r"num_(attention_)?heads|n_heads?|(encoder|decoder)_attention_heads|num_attention_groups|(encoder|decoder)_n_heads?"
    r"|linear_num_value_heads|linear_num_heads|index_n_heads|(encoder|decoder)_num_heads"
)
_FEW_HEADS = re.compile(r"num_key_value_heads|multi_query_group_num|num_kv_heads|linear_num_key_heads|n_head_kv")
_HEAD_SIZE = re.compile(r"(\w+_)?head_dim|d_kv|kv_channels|attention_head_size|d_head")
_WIDTH = re.compile(
    r"(\w+_)?hidden_size|d_model|n_embd|dim|embed_dim|emb_dim|word_embed_proj_dim|embedding_size|projection_dim|embed_size"
    r"|attention_hidden_size|output_dim|hidden_dim_model|model_dim|projection_size|hidden_size_per_layer_input"
)
_INNER = re.compile(
    r"(\w+_)?intermediate_size|(encoder_|decoder_)?ffn_dim|d_ff|n_inner|hidden_dim|ffn_hidden_size|inner_dim"
)
_EXPERTS = re.compile(r"(num|n)_(local_|routed_|)experts|moe_num_experts|num_routed_experts|expert_num")
_CHOSEN = re.compile(r"num_experts_per_tok(en)?|moe_top_?k|top_k_experts|moe_k|num_selected_experts|experts_per_token")
_POSITIONS = re.compile(
    r"max_position_embeddings|n_positions|n_ctx|max_(source|target|encoder|decoder)_positions|max_seq_len(gth)?|seq_length|context_length|max_sequence_length"
)
_WINDOW = re.compile(
    r"sliding_window|local_attention|attention_window_size|window_size|attention_chunk_size|index_topk"
)
_COUNTS = ((_EXPERTS, 4), (_CHOSEN, 2), (_POSITIONS, 128))
_TOKEN = re.compile(r"_(token|idx|index|id)(_ids?|_index)?s?$")
_RANK = re.compile(r"(q|kv|o|k|v)_lora_rank|index_head_dim|time_step_rank|(decay|gate)_low_rank_dim")
_FIXED: dict[str, Any] = {
    "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
    "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "rotary_dim": 4, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "qk_head_dim": 16, "v_head_dim": 8, "mamba_d_state": 8, "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_n_groups": 1, "mamba_chunk_size": 8, "chunk_size": 8, "state_size": 8, "query_pre_attn_scalar": 8,
    "hidden_dropout_prob": 0.0, "max_window_layers": 1, "num_kv_shared_layers": 0, "vocab_size_per_layer_input": 0,
    "num_nextn_predict_layers": 0, "num_conv_pos_embedding_groups": 2, "num_mel_bins": 16, "block_size": 8,
    "encoder_seq_length": 64, "bottleneck_size": 16, "intra_bottleneck_size": 32, "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "n_groups": 1, "ssm_state_size": 8, "hyena_order": 2, "moe_layer_start_index": 1, "image_size": 32, "patch_size": 8,
    "num_image_tokens": 16, "downsample_rate": 2, "num_buckets": 8,
}  # fmt: skip
"""Values of fields whose names tell no size."""
_UNSET = {"head_dim": 8, "num_key_value_heads": 4, "num_experts_per_tok": 2, "n_routed_experts": 4}
"""Values of fields that some configs leave unset; models compute the same values from the other sizes."""


def tiny_configs(auto_class: str, model_type: str) -> Iterator[Any]:
    """Yield configs of an architecture: a thoroughly shrunk one, then one that keeps the widths."""
    import transformers

    default = transformers.AutoConfig.for_model(model_type)
    fields = default.to_dict()
    if auto_class == "AutoModelForCausalLM" and "is_decoder" in fields:
        fields["is_decoder"] = True
    for thorough in (True, False):
        with contextlib.suppress(Exception):  # a config may refuse the combination of sizes
            config = type(default).from_dict(_shrunk(fields, thorough=thorough))
            if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
                config.decoder_start_token_id = _TOKENS["decoder_start"]
            yield config


def tiny_model(auto_class: str, model_type: str, *, largest: int = 40_000_000) -> Any:
    """Return a random model of at most `largest` parameters. Raises ValueError where no config gives one."""
    import torch
    import transformers

    reasons = []
    for config in tiny_configs(auto_class, model_type):
        try:
            with torch.device("meta"):
                size = sum(weight.numel() for weight in _of(transformers, auto_class, config).parameters())
            if size > largest:
                reasons.append(f"{size} parameters")
                continue
            torch.manual_seed(0)
            return sharpened(_of(transformers, auto_class, config))
        except Exception as error:  # noqa: BLE001 - models raise errors of any kind on sizes that do not fit together
            reasons.append(f"{type(error).__name__}: {error}".splitlines()[0][:200])
    raise ValueError("; ".join(reasons) or "no config can be made")


def checkpoint(directory: Path, auto_class: str, model_type: str) -> Path:
    """Save a tiny random model without a tokenizer: no tokenizer would be the own one of every architecture."""
    model = tiny_model(auto_class, model_type)
    model.save_pretrained(directory, safe_serialization=True)
    return directory


def sharpened(model: Any, *, seed: int = 0) -> Any:
    """Return the model with weights that spread its numbers, so that a wrong operator shows in the outputs."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.is_floating_point():
                continue
            if weight.ndim > 1 and "emb" not in name:
                fan = max(1, math.prod(weight.shape[1:]) if weight.ndim != 3 else weight.shape[-1])
                weight.copy_(torch.randn(weight.shape, generator=generator) / math.sqrt(fan))
            elif weight.ndim > 1:
                weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
            elif not weight.any() or not weight.isfinite().all():
                weight.copy_(0.1 * torch.randn(weight.shape, generator=generator))
    return model.eval()


def _of(transformers: Any, auto_class: str, config: Any) -> Any:
    return getattr(transformers, auto_class).from_config(config)


def _shrunk(fields: dict[str, Any], *, thorough: bool) -> dict[str, Any]:
    """Return the fields of a config, with small sizes for the names that are known."""
    depth = next((value for name, value in fields.items() if _LAYERS.fullmatch(name) and isinstance(value, int)), 0)
    kept = _kept_layers(fields, depth)
    small: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "per_layer_config" and isinstance(value, dict):
            by_place = {int(place): layer for place, layer in value.items()}
            layers = {new: by_place[old] for new, old in enumerate(kept) if old in by_place}
            small[name] = {new: _shrunk(layer, thorough=thorough) for new, layer in layers.items()}
        elif name == "num_key_value_heads" and "qk_rope_head_dim" in fields and thorough:
            small[name] = 4  # multi-head latent attention has as many heads of keys as of queries
        elif isinstance(value, dict) and name not in {"id2label", "label2id"} and not name.startswith("rope"):
            small[name] = _shrunk(value, thorough=thorough)
        elif isinstance(value, list) and depth > 2 and len(value) == depth:
            small[name] = [value[place] for place in kept]
        else:
            small[name] = _value(name, value, layers=len(kept), thorough=thorough)
    return small


def _kept_layers(fields: dict[str, Any], depth: int) -> list[int]:
    """Return the layers to keep: the first of each kind by the lists with an entry per layer, and at least two."""
    lists = [value for value in fields.values() if isinstance(value, list) and depth > 2 and len(value) == depth]
    firsts: dict[str, int] = {}
    for place in range(depth):
        firsts.setdefault(repr([each[place] for each in lists]), place)
    kept = sorted(firsts.values())[:6] if lists else [0]
    return kept if len(kept) > 1 else [0, 1]


def _value(name: str, value: Any, *, layers: int, thorough: bool) -> Any:
    """Return a small value for a field that is no list and no dictionary."""
    words = len(models.vocabulary())
    if name == "vocab_size" and value is None:
        return words
    if name == "pad_token_id" or value is None:
        return 0 if name == "pad_token_id" else _UNSET.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and _TOKEN.search(name):
        return _token(name, value, words)
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return value
    small = next((min(value, most) for pattern, most in (*_COUNTS, (_LAYERS, layers)) if pattern.fullmatch(name)), None)
    if "vocab_size" in name or small is not None:
        return words if small is None else small
    return _size(name, value) if thorough and isinstance(value, int) else value


def _token(name: str, value: int, words: int) -> int:
    """Return the id of a special token: the tokenizer's, or any other id below `words`."""
    known = _TOKENS.get(re.split(r"_token_id|_token_index|_index|_id", name)[0])
    return known if known is not None else value if value < words else 10 + sum(map(ord, name)) % 40


def _size(name: str, value: int) -> int:
    if name in _FIXED:
        return min(value, int(_FIXED[name]))
    sizes = {_FEW_HEADS: 2, _HEADS: 4, _HEAD_SIZE: 8, _WIDTH: 32, _INNER: 64, _WINDOW: 8, _RANK: 8}
    return next((min(value, size) for pattern, size in sizes.items() if pattern.fullmatch(name)), value)
