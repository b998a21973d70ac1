"""The text of an answer as it grows: shipped in packages beside model.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

_HALF = "\ufffd"
"""What tokenizers give for bytes that are no character, or not yet."""


class Pieces:
    """One row's answer, token by token; all pieces together are the whole.

    Held back are bytes that may become a character, and letters that may become a stop string. A stop string ends the
    answer and is no part of it. Bytes that never become a character are U+FFFD, as tokenizers have it.

    A tokenizer that falls back to bytes takes a character back when broken bytes follow it, and makes one U+FFFD of
    each byte of both. What was sent stays: of these, the bytes behind it follow.
    """

    def __init__(
        self, decode: Callable[[list[int]], str], *, context: Sequence[int] = (), stops: Sequence[str] = (),
        whole: bool = False,
    ) -> None:  # fmt: skip
        """Begin. `context` are the tokens before the answer: some tokenizers drop a space at a text's beginning.

        `whole` makes one piece of everything, when it is finished: the text that the tokenizer itself makes of it.
        """
        self.stopped = False
        """Whether a stop string has come."""
        self._decode = decode
        self._context = list(context)
        self._before = len(decode(self._context)) if context else 0
        self._stops = [stop for stop in stops if stop]
        self._whole = whole
        self._sent = ""

    def next(self, tokens: Sequence[int], *, finished: bool) -> str:
        """Return what is certain of the answer and was not returned before; `tokens` are all of the answer so far."""
        text = self._decode([*self._context, *tokens])[self._before :]
        done = self._done(text)
        places = [place for place in map(text.find, self._stops) if place >= 0]
        if places:
            self.stopped = True
            text = text[: min(places)]
        elif not finished:
            text = "" if self._whole else text.rstrip(_HALF)
            text = text[: len(text) - max((_begun(text, stop) for stop in self._stops), default=0)]
        piece = text[done:]
        self._sent = text if piece else self._sent
        return piece

    def _done(self, text: str) -> int:
        """Return how many letters of the text were sent, be it as the characters that they no longer are."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._sent, text, strict=False)))
        return same + len(self._sent[same:].encode())


def _begun(text: str, stop: str) -> int:
    """Return how many letters of a stop string the text ends with."""
    return next((count for count in range(len(stop) - 1, 0, -1) if text.endswith(stop[:count])), 0)
