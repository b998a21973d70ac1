"""Corpus: a text file on which a model's perplexity is measured, as tokens in windows that overlap."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StepError
from engine.kit.inputs import tokenizer as tokenizers
from engine.text import sizes

LIMIT = 4096
"""The number of tokens at the beginning of a text that are read where a recipe names no number."""
LEAST = 128
"""The least number of tokens of a text; the perplexity of a shorter text says little."""
LENGTH = 256
"""The number of tokens of a window, which keeps the logits of a window small."""
_BYTES = 64
"""The number of bytes of a text that are read for each token; a token of prose takes four."""


@dataclass(frozen=True)
class Window:
    """A part of the tokens that a model reads in one call: the first `seen` tokens are context, and are not scored."""

    start: int
    end: int
    seen: int


def read(path: Path, limit: int = LIMIT) -> str:
    """Return the beginning of a text file, long enough for `limit` tokens.

    Raises StepError for a file that is empty, too short for `LEAST` tokens, or no UTF-8 text.
    """
    with path.open("rb") as file:
        content = file.read(limit * _BYTES)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(content)
    except UnicodeDecodeError as error:
        raise StepError(f"{path.name} is no UTF-8 text", [str(error)], "convert it to UTF-8") from error
    if "\0" in text:
        raise StepError(f"{path.name} is no text", ["it has bytes of the value 0"], "name a file of plain text")
    if not text.strip():
        raise StepError(f"{path.name} is empty", hint="name a file of plain text, as the model's users write it")
    if len(content) < LEAST:
        raise _too_short(path, sizes.decimal(len(content)))
    return text


def tokens(path: Path, checkpoint: Path, limit: int = LIMIT) -> list[int]:
    """Return the first tokens of a text file, at most `limit`, as the checkpoint's tokenizer makes them.

    Raises StepError for a file that `read` refuses or that has too few tokens, and for a model without a tokenizer.
    """
    text = read(path, limit)
    tokenizer = tokenizers.load(checkpoint)
    if tokenizer is None:
        what = "perplexity is measured on a text, and the model has no tokenizer"
        raise StepError(what, hint="name one as `model.tokenizer`, or take `validate.perplexity` out")
    tokenizer.backend.no_truncation()
    ids = [int(token) for token in tokenizer.row(text)["input_ids"][0]]
    if len(ids) < LEAST:
        raise _too_short(path, f"{len(ids)} tokens")
    return ids[:limit]


def windows(count: int, longest: int | None) -> Iterator[Window]:
    """Yield the windows of `count` tokens; `longest` is the model's number of positions, None for no limit.

    Each window but the first scores its second half, so that every token has at least half a window before it. Each
    token but the first is scored once.
    """
    length = window_length(longest)
    stride = length // 2
    start, scored = 0, 1
    while scored < count:
        end = min(start + length, count)
        yield Window(start, end, scored - start)
        start, scored = start + stride, end


def window_length(longest: int | None) -> int:
    """Return the number of tokens of a window: less than `LENGTH` for a model with fewer positions."""
    return min(LENGTH, longest or LENGTH)


def _too_short(path: Path, size: str) -> StepError:
    return StepError(
        f"{path.name} is too short for a perplexity",
        [f"it has {size}; at least {LEAST} tokens are needed"],
        "name a longer text; some thousand tokens give a number that does not depend on chance",
    )
