"""Exact texts: rows of text that a model's tokenizer makes into exactly so many tokens."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice

from engine.errors import StepError
from engine.kit.inputs import samples
from engine.kit.inputs.tokenizer import Tokenizer

_FILLERS = ("a", "1", ".", "x")
"""What a text is filled up with where no word of ours fits: nearly every tokenizer makes one token of one of them."""
_APART = 7
"""Words between the beginnings of two rows, so that a batch is not one text many times."""


def draw(tokenizer: Tokenizer, *, rows: int, tokens: int, paired: bool = False) -> list[list[str]]:
    """Return so many rows of one text each, or of two that belong together, of `tokens` tokens with the special ones.

    They are words of our built-in texts. Raises StepError where the tokenizer cuts texts before they are as long, or
    no text has that length.
    """
    limit = (tokenizer.backend.truncation or {}).get("max_length")
    if limit is not None and tokens > limit:
        raise _none(tokens, f"texts are cut at {limit} tokens")
    counting = _uncut(tokenizer)
    words = " ".join(line.text for line in samples.built_in()).split()
    starts = [number * _APART % len(words) for number in range(rows)]
    return [_row(counting, words[start:] + words[:start], tokens, paired=paired) for start in starts]


def _uncut(tokenizer: Tokenizer) -> Tokenizer:
    backend = type(tokenizer.backend).from_str(tokenizer.backend.to_str())
    backend.no_truncation()
    return replace(tokenizer, backend=backend)


def _row(tokenizer: Tokenizer, words: list[str], tokens: int, *, paired: bool) -> list[str]:
    """Return the first words, as many as fit, and then one filler as often as is needed."""
    first = words[:1] if paired else []
    chosen: list[str] = []
    for word in islice(cycle(words), tokens):
        if _count(tokenizer, first, [*chosen, word]) > tokens:
            break
        chosen.append(word)
    for filler in _FILLERS:
        text = list(chosen)
        while _count(tokenizer, first, text) < tokens and len(text) < tokens:
            text.append(filler)
        if _count(tokenizer, first, text) == tokens:
            return [*first, " ".join(text)]
    raise _none(tokens, f"the shortest has {_count(tokenizer, first, [])}")


def _count(tokenizer: Tokenizer, first: list[str], second: list[str]) -> int:
    text = " ".join(second)
    row = tokenizer.row(first[0], text) if first else tokenizer.row(text)
    return int(row["input_ids"].shape[1])


def _none(tokens: int, why: str) -> StepError:
    return StepError(
        f"there is no text of exactly {tokens} tokens for this model's tokenizer",
        [why],
        "name another `sequence` under bench.shapes, or measure `via: [in-process]` alone",
    )
