"""Tiny random models that generate, each with a tokenizer of its family's kind, saved as transformers does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FAMILIES = ("gpt2", "opt", "llama", "t5", "bart")
BEHIND_AN_ENCODER = ("t5", "bart")
POSITIONS = 48
_SPECIAL = {
    "gpt2": ["<|endoftext|>"],
    "opt": ["<s>", "<pad>", "</s>", "<unk>"],
    "llama": ["<unk>", "<s>", "</s>"],
    "t5": ["<pad>", "</s>", "<unk>"],
    "bart": ["<s>", "<pad>", "</s>", "<unk>"],
}
_TEXTS = (
    "The cat sat on the mat and looked at the dog, who slept. Der Hund schläft heute gar nicht gut.",
    "Once upon a time there was a little house in the big woods; nobody knew who had built it.",
)
_SIZES = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "opt": {"hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4},
    "llama": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2},
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "bart": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
             "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
}  # fmt: skip
_LENGTH = {"gpt2": "n_positions", "t5": "n_positions"}  # T5 has none, but its config takes anything


def checkpoint(directory: Path, family: str, *, seed: int = 0, positions: int = POSITIONS, **generation: Any) -> Path:
    """Save a random two-layer model; `generation` goes into its generation_config.json."""
    import torch
    import transformers

    words = save_tokenizer(directory, family)
    ids = _ids(family, words)
    # A head of its own: one that is tied to the embeddings repeats the last token for ever.
    sizes: dict[str, Any] = {**_SIZES[family], "vocab_size": len(words), "tie_word_embeddings": False}
    sizes[_LENGTH.get(family, "max_position_embeddings")] = positions
    config = transformers.AutoConfig.for_model(family, **ids, **sizes)
    torch.manual_seed(seed)
    kind = "AutoModelForSeq2SeqLM" if family in BEHIND_AN_ENCODER else "AutoModelForCausalLM"
    model = getattr(transformers, kind).from_config(config)
    with torch.no_grad():  # spread, so that attention is no plain average and the largest logit stands out
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and (family != "t5" or "SelfAttention" in name or "EncDec" in name):
                weight.mul_(6)
    for name, value in generation.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(directory)
    return directory


def encoder(directory: Path) -> Path:
    """Save the encoder of a random T5 alone, and its tokenizer."""
    import torch
    import transformers

    torch.manual_seed(0)
    words = save_tokenizer(directory, "t5")
    config = transformers.T5Config(vocab_size=len(words), **_SIZES["t5"], **_ids("t5", words))
    transformers.T5EncoderModel(config).save_pretrained(directory, safe_serialization=True)
    return directory


def save_tokenizer(directory: Path, family: str) -> dict[str, int]:
    """Save tokenizer.json and its settings; return token -> id."""
    tokenizer = {"llama": _sentence_pieces, "t5": _unigrams}.get(family, _bytes)(family)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    settings |= {"eos_token": "<|endoftext|>" if family == "gpt2" else "</s>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer.get_vocab()


def _ids(family: str, words: dict[str, int]) -> dict[str, int]:
    if family == "gpt2":
        return dict.fromkeys(("bos_token_id", "eos_token_id"), words["<|endoftext|>"])
    ids = {"eos_token_id": words["</s>"]}
    if "<pad>" in words:
        ids["pad_token_id"] = words["<pad>"]
    if family == "t5":
        return {**ids, "decoder_start_token_id": words["<pad>"]}
    ids["bos_token_id"] = words["</s>" if family == "opt" else "<s>"]
    if family == "bart":
        ids |= {"decoder_start_token_id": words["</s>"], "forced_eos_token_id": words["</s>"]}
    return ids


def _bytes(family: str) -> Any:
    """Return a tokenizer of bytes, with the frame of BART, the beginning of OPT, nothing for GPT-2."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=_SPECIAL[family], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    frames = {"bart": "<s> $A </s>", "opt": "</s> $A"}
    return _framed(tokenizer, frames.get(family))


def _sentence_pieces(family: str) -> Any:
    """Return a tokenizer as SentencePiece's BPE with bytes for what it does not know: Llama's."""
    from tokenizers import Tokenizer, decoders, models, normalizers, trainers

    special = [*_SPECIAL[family], *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(_TEXTS, trainer)
    model = json.loads(tokenizer.to_str())
    model["added_tokens"] = [each for each in model["added_tokens"] if each["content"] in _SPECIAL[family]]
    tokenizer = Tokenizer.from_str(json.dumps(model))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return _framed(tokenizer, "<s> $A")


def _unigrams(family: str) -> Any:
    """Return a tokenizer as SentencePiece's unigrams: T5's."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=_SPECIAL[family], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(_TEXTS, trainer)
    return _framed(tokenizer, "$A </s>")


def _framed(tokenizer: Any, frame: str | None) -> Any:
    from tokenizers import processors

    if frame is not None:
        tokens = [(token, tokenizer.token_to_id(token)) for token in frame.split() if token != "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(single=frame, special_tokens=tokens)
    return tokenizer
