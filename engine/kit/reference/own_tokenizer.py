"""Own tokenizer: the checkpoint's tokenizer, as a user of transformers loads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import sentences
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class OwnTokenizer:
    """A tokenizer of transformers; `names` are the model's inputs that it gives."""

    tokenizer: Any
    names: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The name of the tokenizer's class."""
        return type(self.tokenizer).__name__

    def inputs(self, text: str, pair: str | None, *, longest: int | None, fills: bool = False) -> dict[str, np.ndarray]:
        """Return what a user gives the model for a text or a pair, int64 [1, tokens] each, cut to `longest` tokens.

        With `fills`, a shorter text is padded to `longest` tokens.
        """
        cut: dict[str, Any] = {} if longest is None else {"truncation": True, "max_length": longest}
        cut |= {"padding": "max_length"} if fills else {}
        encoded = self.tokenizer(text, pair, return_tensors="np", **cut)
        return {name: array.astype("int64") for name, array in encoded.items()}


TOOLS = ("sentencepiece", "tokenizers")
"""The distributions that read a checkpoint's tokenizer: transformers converts the files of sentencepiece."""


def load(checkpoint: Path) -> OwnTokenizer | None:
    """Return the checkpoint's tokenizer as `AutoTokenizer` loads it; None where the checkpoint has no tokenizer.

    Raises StepError where transformers cannot load the tokenizer, or could do so only with code of the checkpoint.
    """
    checkpoints.refuse_own_code(checkpoint)
    if not checkpoints.has_tokenizer(checkpoint):
        return None
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(checkpoint), local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises whatever its converters do
        _refuse_config(checkpoint)
        raise StepError(
            "the checkpoint's own tokenizer cannot be loaded",
            reasons.facts(error, without=f"{checkpoint}/"),
            'if tokenizer.json is right, write "tokenizer_class": "PreTrainedTokenizerFast" into '
            "tokenizer_config.json; or name the directory of another tokenizer as `tokenizer` beside `source`",
        ) from error
    if getattr(tokenizer, "backend_tokenizer", None) is not None:
        sentences.lowercase_first(tokenizer.backend_tokenizer, checkpoint)
    return OwnTokenizer(tokenizer, tuple(tokenizer.model_input_names))


def _refuse_config(checkpoint: Path) -> None:
    """Raise StepError where transformers cannot read config.json, without which it loads no tokenizer either."""
    import transformers

    try:
        transformers.AutoConfig.from_pretrained(str(checkpoint), local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise StepError(
            "transformers cannot read config.json of the checkpoint",
            reasons.facts(error, without=f"{checkpoint}/"),
            "mend the field in config.json, or save the model again with save_pretrained()",
        ) from error
