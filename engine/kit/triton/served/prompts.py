"""Texts as the tokens that a generating model takes: shipped in packages beside model.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CONTEXT = 8
"""How many tokens before an answer decide how its first is written."""


class Prompts:
    """A tokenizer that cuts texts to the room that there is.

    A text that is continued loses its beginning, for what follows depends on its end (as transformers' and other
    servers' "truncate" do it); a text that an encoder reads loses its end. Special tokens stay.
    """

    def __init__(self, tokenizer: Any, said: Mapping[str, Any]) -> None:
        """Take the tokenizer, and `prompts` of generation.json: "longest", "positions", "encoder", "empty"."""
        self.longest: int | None = said["longest"]
        self.positions: int | None = said["positions"]
        self.encoder: bool = said["encoder"]
        self.empty: int | None = said["empty"]
        self._tokenizer = tokenizer
        self._special = tokenizer.num_special_tokens_to_add(False)  # noqa: FBT003 - of one text, no pair
        self._bytes = {tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)} - {None}

    def tokens(self, text: str, *, new: int) -> list[int]:
        """Return a text's tokens, special ones included, so that `new` more have room.

        Raises ValueError where there is no room for any text, the tokenizer cannot read it, or an empty one is nothing
        that the model can begin with.
        """
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
        """Return the tokens that an answer is read behind: none for what an encoder read, which it does not continue.

        Bytes at the end of a prompt do not count: what follows would be taken for a part of the same character.
        """
        end = 0 if self.encoder else len(prompt)
        while end and prompt[end - 1] in self._bytes:
            end -= 1
        return prompt[max(end - _CONTEXT, 0) : end]

    def _room(self, new: int) -> int | None:
        """Return the most tokens that a prompt may have; None for no limit."""
        behind = [] if self.encoder or self.positions is None else [self.positions - new]
        return min([*behind, *([] if self.longest is None else [self.longest])], default=None)
