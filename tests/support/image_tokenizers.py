"""Small tokenizers of models with a text tower, the same bytes each time, with the special ids that configs need."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import models

TEXTS = ("a photo of a cat", "a photo of a dog", "a train by the river", "two slow films", "a cold scene, fast!")
"""Texts whose words the tokenizers know."""
SUBJECTS = ("cat", "dog", "bird", "car", "tree", "house", "boat", "horse", "chair")
_WORDS = tuple(dict.fromkeys((*" ".join(TEXTS).replace(",", "").replace("!", "").split(), *SUBJECTS, *models.WORDS)))
_CLIP_LENGTH = 32
_SIGLIP_LENGTH = 64
"""Tokens to which SigLIP pads each text, in the pipeline of transformers too."""


def clip(folder: Path) -> dict[str, int]:
    """Save byte pairs as CLIP has them: lower case, words end with `</w>`."""
    from tokenizers import pre_tokenizers
    from transformers import CLIPTokenizer

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = _merges([[*word[:-1], f"{word[-1]}</w>"] for word in _WORDS])
    pieces = [*letters, *(f"{letter}</w>" for letter in letters), *(left + right for left, right in merges)]
    words = _numbered(["<|startoftext|>", "<|endoftext|>", *pieces])
    CLIPTokenizer(vocab=words, merges=merges, model_max_length=_CLIP_LENGTH).save_pretrained(folder)
    end = words["<|endoftext|>"]
    return {
        "vocab_size": len(words),
        "bos_token_id": words["<|startoftext|>"],
        "eos_token_id": end,
        "pad_token_id": end,
    }


def siglip(folder: Path) -> dict[str, int]:
    """Save word pieces that end with `</s>` and know no attention mask: each text is padded to the full length."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers import models as kinds
    from transformers import PreTrainedTokenizerFast

    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    pieces = list(dict.fromkeys([*(f"▁{word}" for word in _WORDS), "▁", *letters, *".,!?'"]))
    scores = [(piece, -1.0 - number / len(pieces) - 8.0 * (len(piece) < 2)) for number, piece in enumerate(pieces)]
    tokenizer = Tokenizer(kinds.Unigram([("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -1000.0), *scores], unk_id=2))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=_SIGLIP_LENGTH,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_input_names=["input_ids"],
    ).save_pretrained(folder)
    return {"vocab_size": 3 + len(pieces), "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}


def siglip2(folder: Path) -> dict[str, int]:
    """Save byte pairs as SigLIP 2 publishes them: transformers makes texts lower case, `tokenizer.json` does not."""
    from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers import models as kinds

    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    merges = _merges([[f"▁{word}"[0], *word] for word in _WORDS] + [list(word) for word in _WORDS])
    letters = [chr(code) for code in range(ord("!"), ord("~") + 1)]
    joined = (left + right for left, right in merges)
    words = _numbered([*special, *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *letters, *joined])
    tokenizer = Tokenizer(kinds.BPE(words, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "GemmaTokenizer",
        "model_max_length": _SIGLIP_LENGTH,
        "padding_side": "right",
        "add_bos_token": False,
        "add_eos_token": True,
        **{f"{token[1:-1]}_token": token for token in special},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return {"vocab_size": len(words), "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2}


def bert(folder: Path) -> dict[str, int]:
    """Save the word pieces of the text models."""
    models.save_tokenizer(folder, "bert", limit=_CLIP_LENGTH)
    words = models.vocabulary("bert")
    return {"vocab_size": len(words), "pad_token_id": words["[PAD]"]}


def xlm_roberta(folder: Path) -> dict[str, int]:
    """Save the word pieces of the text models with the special tokens of RoBERTa."""
    models.save_tokenizer(folder, "xlm-roberta", limit=_CLIP_LENGTH)
    words = models.vocabulary("xlm-roberta")
    special = {"pad_token_id": words["<pad>"], "bos_token_id": words["<s>"], "eos_token_id": words["</s>"]}
    return {"vocab_size": len(words), **special}


def _merges(words: Iterable[list[str]]) -> list[tuple[str, str]]:
    """Return the merges that join the letters of each word, from the left."""
    merges: dict[tuple[str, str], None] = {}
    for letters in words:
        whole = letters[0]
        for letter in letters[1:]:
            merges.setdefault((whole, letter))
            whole += letter
    return list(merges)


def _numbered(tokens: Iterable[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(dict.fromkeys(tokens))}
