"""Exact texts: rows of text with an exact number of tokens for a model's tokenizer."""

from __future__ import annotations

from itertools import cycle, islice

from engine.errors import StepError
from engine.kit.inputs import samples
from engine.kit.inputs.tokenizer import Tokenizer

_FILLERS = ("a", "1", ".", "x")
"""Short words that fill a row up to the exact number of tokens.

Nearly every tokenizer makes a single token of at least one of the words in `_FILLERS`.
"""
_APART = 7
"""The number of words between the beginnings of two successive rows in the built-in texts, so that rows differ."""


def draw(tokenizer: Tokenizer, *, rows: int, tokens: int, paired: bool = False) -> list[list[str]]:
    """Return `rows` rows of one text each, or of a pair, with exactly `tokens` tokens, special tokens included.

    The texts consist of words from the samples that come with this project. The tokenizer cuts no text any more. Raises
    StepError where its limit is below `tokens`, or where no row with exactly `tokens` tokens is found.
    """
    limit = tokenizer.longest
    if limit is not None and tokens > limit:
        raise _none(tokens, f"texts are cut at {limit} tokens")
    tokenizer.backend.no_truncation()
    words = " ".join(line.text for line in samples.built_in()).split()
    starts = [number * _APART % len(words) for number in range(rows)]
    return [_row(tokenizer, words[start:] + words[:start], tokens, paired=paired) for start in starts]


def _row(tokenizer: Tokenizer, words: list[str], tokens: int, *, paired: bool) -> list[str]:
    """Return the texts of a row with exactly `tokens` tokens: as many `words` as fit, then one filler word, repeated.

    The first text of a pair is a single word.
    """
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
    """Return the number of tokens of the pair `first` and `second`, or of `second` alone where `first` is empty."""
    text = " ".join(second)
    row = tokenizer.row(first[0], text) if first else tokenizer.row(text)
    return int(row["input_ids"].shape[1])


def _none(tokens: int, why: str) -> StepError:
    return StepError(
        f"there is no text of exactly {tokens} tokens for this model's tokenizer",
        [why],
        "name another `sequence` under bench.shapes, or measure `via: [in-process]` alone",
    )
