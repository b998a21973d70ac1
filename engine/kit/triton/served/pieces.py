"""Streaming: turns the tokens of a growing answer into pieces of text. Packages carry pieces.py beside model.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

_HALF = "\ufffd"
"""The character that tokenizers write for bytes that are not a complete character."""


class Pieces:
    """Turns the tokens of one answer into pieces of text; all pieces together are the whole answer.

    Bytes at the end of the text that may still become a character, and letters that may still become a stop string, are
    sent with a later piece. A stop string ends the answer and is not part of the answer. Bytes that never become a
    character are written as U+FFFD, as tokenizers do.

    A tokenizer with byte fallback may decode the same tokens differently once more tokens follow: when broken bytes
    follow a character, the tokenizer writes one U+FFFD for each byte of the character and of the broken bytes. A
    character that was already sent is not sent again as U+FFFD; only the U+FFFD of the broken bytes are sent.
    """

    def __init__(
        self, decode: Callable[[list[int]], str], *, context: Sequence[int] = (), stops: Sequence[str] = (),
        whole: bool = False,
    ) -> None:  # fmt: skip
        """Begin an answer; `decode` turns tokens into text.

        `context` holds the tokens before the answer, because some tokenizers drop a space at the beginning of a text.
        With `whole`, the answer is one single piece, returned at the end: the text as the tokenizer decodes it.
        """
        self.stopped = False
        """Whether the answer ended at a stop string."""
        self._decode = decode
        self._context = list(context)
        self._before = len(decode(self._context)) if context else 0
        self._stops = [stop for stop in stops if stop]
        self._whole = whole
        self._sent = ""

    def next(self, tokens: Sequence[int], *, finished: bool) -> str:
        """Return the next piece: the text that later tokens cannot change, without the text that was already sent.

        `tokens` are all tokens of the answer so far.
        """
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
        """Return how many letters at the beginning of `text`, the decoded answer, were already sent.

        A character that was sent and has become U+FFFD since then counts as one letter for each of its bytes.
        """
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._sent, text, strict=False)))
        return same + len(self._sent[same:].encode())


def _begun(text: str, stop: str) -> int:
    """Return how many letters at the end of `text` may be the beginning of the stop string `stop`."""
    return next((count for count in range(len(stop) - 1, 0, -1) if text.endswith(stop[:count])), 0)
