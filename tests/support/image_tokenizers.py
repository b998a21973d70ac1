"""Small tokenizers of models with a text tower; `tokenizer.json` alone gives what transformers gives."""

from __future__ import annotations

import json
from pathlib import Path

import models

TEXTS = ("a photo of a cat", "a photo of a dog", "a train by the river", "two slow films", "a cold scene, fast!")
SUBJECTS = ("cat", "dog", "bird", "car", "tree", "house", "boat", "horse", "train", "chair")


def clip(folder: Path) -> dict[str, int]:
    """Save byte pair encoding as CLIP has it: lower case, words end with `</w>`. Return the ids of special tokens."""
    from tokenizers import Tokenizer, models as kinds, pre_tokenizers, trainers
    from transformers import CLIPTokenizer

    trained = Tokenizer(kinds.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    trained.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel()])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=alphabet,
        end_of_word_suffix="</w>",
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        show_progress=False,
    )
    trained.train_from_iterator(_texts(), trainer)
    state = json.loads(trained.to_str())["model"]
    vocabulary = state["vocab"]
    for byte in alphabet:
        vocabulary.setdefault(f"{byte}</w>", len(vocabulary))
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=[tuple(pair) for pair in state["merges"]], model_max_length=32)
    tokenizer.save_pretrained(folder)
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": vocabulary["<|startoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
    }


def siglip(folder: Path) -> dict[str, int]:
    """Save word pieces that end with `</s>` and know no attention mask: SigLIP pads each text to its full length."""
    from tokenizers import Tokenizer, decoders, models as kinds, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(kinds.Unigram())
    trained.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Strip()])
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", initial_alphabet=list("abcdefghijklmnopqrstuvwxyz.,!?'"),
        show_progress=False,
    )  # fmt: skip
    trained.train_from_iterator(_texts(), trainer)
    trained.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained,
        model_max_length=16,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_input_names=["input_ids"],
    )
    tokenizer.save_pretrained(folder)
    return {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}


def bert(folder: Path) -> dict[str, int]:
    """Save the word pieces of the text models."""
    models.save_tokenizer(folder, "bert", limit=32)
    words = models.vocabulary("bert")
    return {"vocab_size": len(words), "pad_token_id": words["[PAD]"]}


def xlm_roberta(folder: Path) -> dict[str, int]:
    """Save the word pieces of the text models with the special tokens of RoBERTa."""
    models.save_tokenizer(folder, "xlm-roberta", limit=32)
    words = models.vocabulary("xlm-roberta")
    return {
        "vocab_size": len(words),
        "pad_token_id": words["<pad>"],
        "bos_token_id": words["<s>"],
        "eos_token_id": words["</s>"],
    }


def _texts() -> list[str]:
    return [*TEXTS, *(f"a photo of a {each}" for each in SUBJECTS), *models.WORDS, " ".join(models.WORDS)]
