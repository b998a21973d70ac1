"""Tokenizer: the model's own tokenizer, which turns texts into rows of tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import exportable, json_files, published, sentences
from engine.kit.inputs.token_rows import Row, Side
from engine.text import distribution, reasons

_ENDLESS = 1_000_000
"""A tokenizer's limit of this length or more means no limit; some tokenizers have a limit of 10^30 tokens."""
_SHOWN = 80
"""The largest number of characters of a text that an error quotes."""
_OTHER = f"name a folder with a tokenizer.json as `tokenizer` beside `source`; or {exportable.OWN_EXPORT}"
"""The hint for a tokenizer without a tokenizer.json."""
_LEFT = frozenset(
    {
        "CodeLlamaTokenizer", "CohereTokenizer", "CpmAntTokenizer", "GemmaTokenizer", "LlamaTokenizer",
        "Siglip2Tokenizer", "XLNetTokenizer",
    }
)  # fmt: skip
"""The tokenizer classes of transformers that pad on the left where no file names a side."""
_LEFT_FAMILIES = frozenset(
    {
        "aya_vision", "code_llama", "cohere", "cohere2", "cpmant", "diffusion_gemma", "gemma", "gemma2", "gemma3",
        "gemma3_text", "gemma3n", "gemma3n_text", "idefics", "idefics2", "recurrent_gemma", "shieldgemma2", "siglip2",
        "t5gemma", "xlnet", "zaya",
    }
)  # fmt: skip
"""The values of `model_type` whose tokenizers are of a class in `_LEFT` where no file names a class."""


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer that cuts texts to the model's length and does not pad.

    `pad` is the padding token's id, and `side` is the side on which a package pads texts.
    """

    backend: Any
    pad: int
    side: Side = "right"
    prompt: str = ""
    """What a sentence-transformers model puts in front of each text, or of the first text of a pair."""

    @property
    def longest(self) -> int | None:
        """The number of tokens to which texts are cut; None where they are not cut."""
        limit: int | None = (self.backend.truncation or {}).get("max_length")
        return limit

    def row(self, text: str, pair: str | None = None) -> Row:
        """Return a text or a pair of texts as a row, with special tokens; each tensor is int64 [1, tokens].

        Raises StepError where the tokenizer fails, for example because it has no token for unknown words.
        """
        import numpy as np

        try:
            encoded = self.backend.encode(self.prompt + text, pair)
        except Exception as error:  # tokenizers raises plain Exception
            shown = text if pair is None else f"{text} | {pair}"
            raise StepError(
                "the tokenizer cannot read a text",
                [f"tokenizers says: {reasons.of_error(error)}", f"the text: {shown[:_SHOWN]!r}"],
                "does its vocabulary hold all its special tokens, the one for unknown words among them?",
            ) from error
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        return {name: np.array([values], dtype=np.int64) for name, values in columns.items()}


def load(checkpoint: Path, *, longest: int | None = None) -> Tokenizer | None:
    """Return the checkpoint's tokenizer; None where the checkpoint has none.

    Texts are cut to the smallest of four limits: `longest` (for the model's sequence axis), and the limits in the
    model's config, in its tokenizer's config and in sentence-transformers' config. Raises StepError where a file of the
    tokenizer cannot be read.
    """
    backend = _backend(checkpoint)
    if backend is None:
        return None
    settings = json_files.settings(checkpoint / "tokenizer_config.json")
    # tokenizer.json keeps the limit of its last use. The kept limit counts only where no other limit is known.
    last = (backend.truncation or {}).get("max_length")
    limit = min(_limits(checkpoint, settings, longest), default=last)
    pad, padding_side = _pad(checkpoint, backend, settings), _side(checkpoint, backend, settings)
    sentences.lowercase_first(backend, checkpoint)
    backend.no_padding()
    backend.no_truncation()
    if limit is not None:
        side = "left" if str(settings.get("truncation_side")).lower() == "left" else "right"
        backend.enable_truncation(max(limit, backend.num_special_tokens_to_add(is_pair=True) + 1), direction=side)
    return Tokenizer(backend, pad, padding_side, sentences.prompt(checkpoint))


def _limits(checkpoint: Path, tokenizer: dict[str, object], longest: int | None) -> list[int]:
    transformer = json_files.settings(checkpoint / "sentence_bert_config.json")
    own = checkpoints.max_sequence(checkpoint)
    limits = (longest, own, tokenizer.get("model_max_length"), transformer.get("max_seq_length"))
    return [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < _ENDLESS]


def _backend(checkpoint: Path) -> Any:
    path = checkpoints.tokenizer_file(checkpoint)
    if path is None:
        return convert(checkpoint) if checkpoints.has_tokenizer(checkpoint) else None
    rows = published.table_rows(checkpoints.config(checkpoint))
    return read(path) if rows is None else _without_later_tokens(path, rows)


def _without_later_tokens(path: Path, rows: int) -> Any:
    """Return the tokenizer in a tokenizer.json without special tokens for which the model has no embedding."""
    backend = read(path)
    later = [token.content for number, token in backend.get_added_tokens_decoder().items() if number >= rows]
    if not later:
        return backend
    content = json.loads(path.read_bytes())
    content["added_tokens"] = [each for each in content["added_tokens"] if each["content"] not in later]
    return type(backend).from_str(json.dumps(content))


def read(path: Path) -> Any:
    """Return the tokenizer in a tokenizer.json. Raises StepError where the file is broken."""
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise StepError(f"{path.name} cannot be read", reasons.facts(error), "save the tokenizer again") from error


def convert(checkpoint: Path) -> Any:
    """Return the tokenizer that transformers makes from other files than a tokenizer.json.

    Raises StepError where transformers cannot read the files, or has no form of the tokenizer as tokenizer.json.
    """
    try:
        import transformers
    except ImportError as error:
        raise StepError(
            "the tokenizer has no tokenizer.json, and only transformers can convert its files",
            hint=f"{distribution.install('cpu')}, or save the tokenizer once with save_pretrained()",
        ) from error
    try:
        own = transformers.AutoTokenizer.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises whatever its converters do
        checkpoints.refuse_own_code(checkpoint)
        raise StepError(
            "the tokenizer has no tokenizer.json, and its files cannot be converted",
            _why_not_converted(checkpoint, error),
            _OTHER,
        ) from error
    backend = getattr(own, "backend_tokenizer", None)
    if backend is None:
        raise StepError(
            f"{type(own).__name__} has no form as tokenizer.json, which a package needs",
            ["transformers writes no tokenizer.json for a tokenizer of this class"],
            _OTHER,
        )
    return backend


def prompt_tokens(checkpoint: Path, tokenizer: Tokenizer) -> int:
    """Return the number of tokens of the prompt, as sentence-transformers counts them: without an end token.

    An end token that tokenizer_config.json does not name counts as one only by a tokenizer's class of its own.
    """
    encoded = tokenizer.backend.encode(tokenizer.prompt)
    settings = json_files.settings(checkpoint / "tokenizer_config.json")
    named = {special_token(settings, name) for name in settings if name.endswith("_token")}
    generic = settings.get("tokenizer_class") in checkpoints.GENERIC
    ends = encoded.special_tokens_mask[-1] and (encoded.tokens[-1] in named or not generic)
    return len(encoded.ids) - int(bool(ends))


def special_token(settings: Mapping[str, Any], name: str) -> Any:
    """Return the text of a special token in tokenizer_config.json, which holds a text or an object with the text."""
    token = settings.get(name)
    return token.get("content") if isinstance(token, dict) else token


def _pad(checkpoint: Path, backend: Any, tokenizer: dict[str, object]) -> int:
    """Return the padding token's id from tokenizer.json, tokenizer_config.json or config.json; 0 where none has it."""
    token = special_token(tokenizer, "pad_token")
    config = checkpoints.config(checkpoint)
    ids = (
        (backend.padding or {}).get("pad_id"),
        backend.token_to_id(token) if isinstance(token, str) else None,
        config.get("pad_token_id"),
    )
    return next((number for number in ids if isinstance(number, int)), 0)


def _side(checkpoint: Path, backend: Any, tokenizer: Mapping[str, object]) -> Side:
    """Return the side on which the tokenizer pads texts, as transformers chooses it.

    The side comes from tokenizer_config.json, else from tokenizer.json, else from the tokenizer's class.
    """
    named = tokenizer.get("padding_side") or (backend.padding or {}).get("direction")
    if named is not None:
        return "left" if str(named).lower() == "left" else "right"
    config = checkpoints.config(checkpoint)
    kind = tokenizer.get("tokenizer_class") or config.get("tokenizer_class")
    if isinstance(kind, str):
        return "left" if kind.removesuffix("Fast") in _LEFT else "right"
    return "left" if config.get("model_type") in _LEFT_FAMILIES else "right"


def _why_not_converted(checkpoint: Path, error: Exception) -> list[str]:
    """Return lines of text that tell why transformers could not convert the tokenizer's files.

    transformers tries several readers on a SentencePiece model, and reports only the failure of the last reader,
    tiktoken.
    """
    models = sorted(path.name for path in checkpoint.glob("*.model"))
    if models and "tiktoken" in str(error):
        fact = f"neither transformers nor sentencepiece can read {', '.join(models)}"
        return [fact, *_sentencepiece_trouble()]
    return reasons.facts(error, without=f"{checkpoint}/")


def _sentencepiece_trouble() -> list[str]:
    """Return a line that tells why the Python package sentencepiece cannot be imported; [] where it can be imported."""
    try:
        from sentencepiece import sentencepiece_model_pb2  # noqa: F401 - only tried
    except Exception as error:  # noqa: BLE001 - protobuf raises errors of its own for code that another version generated
        return [reasons.because("sentencepiece does not work here", error)]
    return []
