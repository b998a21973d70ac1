"""The model's own tokenizer: text -> rows of tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit import checkpoint as checkpoints
from engine.kit.token_rows import Row

_FILES = ("tokenizer_config.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")
_ENDLESS = 1_000_000
"""Some tokenizers say 10^30 where they mean that they know no limit."""


@dataclass(frozen=True)
class Tokeniser:
    """A tokenizer that cuts texts to what the model can take, and never pads; `pad` is the id to fill up with."""

    backend: Any
    pad: int

    def row(self, text: str, pair: str | None = None) -> Row:
        """Return a text, or a pair of texts, with the model's special tokens: each tensor int64 [1, tokens]."""
        import numpy as np

        encoded = self.backend.encode(text, pair)
        made = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        return {name: np.array([values], dtype=np.int64) for name, values in made.items()}


def load(checkpoint: Path, *, longest: int | None = None) -> Tokeniser | None:
    """Return the checkpoint's tokenizer, None where it has none. `longest` is what the model's own axis allows.

    Texts are cut at the least of what the model, its tokenizer and sentence-transformers' settings allow.
    Raises StepError where the tokenizer's files cannot be read.
    """
    backend = _backend(checkpoint)
    if backend is None:
        return None
    settings = _json(checkpoint / "tokenizer_config.json")
    # What the file was last used with: a good guess at the limit only where nothing else tells it.
    last = (backend.truncation or {}).get("max_length")
    limit = min(_limits(checkpoint, settings, longest), default=last)
    pad = _pad(checkpoint, backend, settings)
    backend.no_padding()
    backend.no_truncation()
    if limit is not None:
        backend.enable_truncation(max(limit, backend.num_special_tokens_to_add(is_pair=True) + 1))
    return Tokeniser(backend, pad)


def _limits(checkpoint: Path, settings: dict[str, Any], longest: int | None) -> list[int]:
    sentences = _json(checkpoint / "sentence_bert_config.json")
    own = checkpoints.max_sequence(checkpoint)
    said = (longest, own, settings.get("model_max_length"), sentences.get("max_seq_length"))
    return [int(limit) for limit in said if isinstance(limit, int | float) and 0 < limit < _ENDLESS]


def _backend(checkpoint: Path) -> Any:
    import tokenizers

    path = checkpoints.tokenizer_file(checkpoint)
    if path is None:
        return _converted(checkpoint) if any((checkpoint / name).is_file() for name in _FILES) else None
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise StepError(f"{path.name} cannot be read", [str(error)], "save the tokenizer again") from error


def _converted(checkpoint: Path) -> Any:
    """Return the fast tokenizer that transformers makes of slow files."""
    try:
        import transformers
    except ImportError as error:
        raise StepError(
            "the tokenizer has no tokenizer.json, and only transformers can convert its files",
            hint="pip install 'recipe[cpu]', or save the tokenizer once with save_pretrained()",
        ) from error
    try:
        return transformers.AutoTokenizer.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False
        ).backend_tokenizer
    except Exception as error:  # transformers raises whatever its converters do
        facts = [line for line in str(error).replace(f"{checkpoint}/", "").splitlines() if line.strip()]
        raise StepError(
            "the tokenizer has no tokenizer.json, and its files cannot be converted",
            facts[:8],
            "save it once with save_pretrained(), or give samples as .npz",
        ) from error


def _pad(checkpoint: Path, backend: Any, settings: dict[str, Any]) -> int:
    """Return the id of the padding token, by the first of those files that knows."""
    token = settings.get("pad_token")
    token = token.get("content") if isinstance(token, dict) else token
    config = checkpoints.config(checkpoint)
    said = (
        (backend.padding or {}).get("pad_id"),
        backend.token_to_id(token) if isinstance(token, str) else None,
        config.get("pad_token_id"),
    )
    return next((number for number in said if isinstance(number, int)), 0)


def _json(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError as error:
        raise StepError(f"{path.name} of the tokenizer is no valid JSON", [str(error)]) from error
    return said if isinstance(said, dict) else {}
