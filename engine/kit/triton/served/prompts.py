"""Prompts: turns texts into the input tokens of a generating model. Packages carry prompts.py beside model.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CONTEXT = 8
"""How many of the prompt's last tokens are decoded with the answer, so that the answer keeps a space at its start."""


class Prompts:
    """A tokenizer that cuts texts to the length that the generating model can take.

    A decoder-only model continues the end of its prompt, so the beginning of a too long prompt is cut off. An encoder
    reads its text from the start, so the end of a too long text is cut off. Special tokens are never cut off.
    """

    def __init__(self, tokenizer: Any, said: Mapping[str, Any]) -> None:
        """Read the limits of prompts from `said`, the section `prompts` of generation.json.

        The section `prompts` has the fields "longest", "positions", "encoder", "empty" and "max_text_bytes".
        """
        self.longest: int | None = said["longest"]
        self.positions: int | None = said["positions"]
        self.encoder: bool = said["encoder"]
        self.empty: int | None = said["empty"]
        self.max_text_bytes: int = said["max_text_bytes"]
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add(False)  # noqa: FBT003 - of one text, no pair
        self._bytes = {tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)} - {None}

    def tokens(self, text: str, *, new: int) -> list[int]:
        """Return the tokens of a text with its special tokens, cut so that `new` more tokens have room.

        Raises ValueError where the text has more than `max_text_bytes`, where `new` tokens leave no room for a text,
        where the tokenizer cannot read the text, and where an empty text has no token from which the model could begin.
        """
        size = len(text.encode("utf-8"))
        if size > self.max_text_bytes:  # the tokenizer reads all of a text before it cuts the text
            raise ValueError(f"TEXT: a text of {size} bytes; this model takes at most {self.max_text_bytes} bytes")
        try:
            encoded = self._tokenizer.encode(text, add_special_tokens=False)
        except Exception as error:  # tokenizers raises plain Exception
            raise ValueError(f"TEXT: the tokenizer cannot read it: {error}") from error
        room = self._room(new)
        if room is not None:
            if room < self._special + 1:
                raise ValueError(f"{new} new tokens leave no room for a text of {len(encoded.ids)}")
            encoded.truncate(room - self._special, direction="right" if self.encoder else "left")
        ids = [int(each) for each in self._tokenizer.post_process(encoded).ids]
        if not ids and self.empty is None:
            raise ValueError("an empty text has no tokens, and the model has none to begin with")
        return ids or [int(self.empty or 0)]

    def context(self, prompt: list[int]) -> list[int]:
        """Return the last tokens of the prompt, which are decoded together with the answer.

        A model with an encoder does not continue its prompt, so `context` returns an empty list for such a model. Byte
        tokens at the end of the prompt are left out: a tokenizer would decode these bytes and the first bytes of the
        answer as one character.
        """
        end = 0 if self.encoder else len(prompt)
        while end and prompt[end - 1] in self._bytes:
            end -= 1
        return prompt[max(end - _CONTEXT, 0) : end]

    def _room(self, new: int) -> int | None:
        """Return the largest number of tokens that a prompt may have, or None for no limit."""
        behind = [] if self.encoder or self.positions is None else [self.positions - new]
        return min([*behind, *([] if self.longest is None else [self.longest])], default=None)
