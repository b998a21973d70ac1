"""Names that look like a misspelt word, and the hints that offer these names."""

from __future__ import annotations

from collections.abc import Iterable

ALIKE = 0.6
"""The similarity, from 0 to 1, from which on two words are alike: the default of difflib.get_close_matches."""
_LONGEST = 256
"""The longest word, in characters, that is compared: the time of a comparison grows with the square of the length."""

FROM_GGUF = (
    "GGUF is not read: load the file with transformers and the package gguf, from_pretrained(DIRECTORY, "
    "gguf_file=NAME), save model and tokenizer with save_pretrained(), and name the new directory"
)
"""The hint for a model in the format GGUF."""


def nearest(word: str, names: Iterable[str], *, count: int = 1, least: float = ALIKE) -> list[str]:
    """Return at most `count` of `names` that look like `word`, the most similar first.

    Where no name looks like `word`, names that look like `word` in lower case are returned. Names whose similarity to
    `word` is below `least` are left out.
    """
    if len(word) > _LONGEST:
        return []
    from difflib import get_close_matches  # imported late: only errors need it

    choices = list(names)
    matches = get_close_matches(word, choices, n=count, cutoff=least)
    return matches or get_close_matches(word.lower(), choices, n=count, cutoff=least)


def did_you_mean(*names: str) -> str:
    """Return the hint that asks whether one of `names` is meant."""
    return f"did you mean {' or '.join(names)}?"


def hint(word: str, names: Iterable[str]) -> str:
    """Return the hint for an unknown `word`: the nearest of `names`, or all of them; without names, to leave it out."""
    choices = list(names)
    if near := nearest(word, choices):
        return did_you_mean(f"`{near[0]}`")
    return f"known here: {', '.join(choices)}" if choices else "leave it out"
