"""Answers: the rows of a model's outputs, as JSON for programs and as a few lines for people."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

_MOST_LABELS = 5
"""The largest number of labels of one row that are printed for people."""
_MOST_VALUES = 6
"""The largest number of values of one tensor that are printed for people."""
MASK = "mask"
"""The output with a PNG, in which each pixel is the number of a class."""
_OUTSIDE = "O"
"""The label of a token that belongs to no entity (the IOB schemes)."""


def rows(outputs: Mapping[str, np.ndarray], count: int) -> list[dict[str, np.ndarray]]:
    """Return a dictionary of outputs for each of `count` rows; for a `count` of 0, one dictionary with all outputs."""
    split = count > 0 and all(array.ndim and array.shape[0] == count for array in outputs.values())
    if not split:
        return [dict(outputs)]
    return [{name: array[number] for name, array in outputs.items()} for number in range(count)]


def as_json(row: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return a row's outputs as JSON: texts decoded, undecodable bytes replaced, NaN and infinities as null.

    The PNG of a mask is encoded as base64.
    """
    masks = {MASK: [base64.b64encode(each).decode() for each in row[MASK].ravel()]} if MASK in row else {}
    return {name: _plain(array.tolist()) for name, array in row.items() if name != MASK} | masks


def shown(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Yield the lines that show a row's outputs to people, in the form that the names of the outputs call for."""
    names = set(row)
    if {"offsets", "tokens", "labels", "scores"} <= names:
        yield from _entities(row)
    elif {"labels", "scores", "boxes"} <= names:
        yield from _objects(row)
    elif MASK in names:
        yield _mask(row)
    elif {"labels", "scores"} <= names:
        yield from _labels(row)
    elif {"answer", "score"} <= names:
        yield _answer(row)
    elif {"tokens", "scores"} <= names:
        yield from _fillings(row)
    elif {"text", "finish_reason"} <= names:
        yield from _generated(row)
    else:
        for name, array in row.items():
            yield _tensor(name, array)


def text_of(row: Mapping[str, np.ndarray]) -> str:
    """Return the generated text."""
    return _texts(row["text"])[0]


def reason_of(row: Mapping[str, np.ndarray]) -> str:
    """Return the reason why generation ended; "" while generation goes on."""
    return _texts(row["finish_reason"])[0] if "finish_reason" in row else ""


def _labels(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    labels, scores = _texts(row["labels"]), row["scores"].ravel()
    longest = max((len(label) for label in labels[:_MOST_LABELS]), default=0)
    for label, score in list(zip(labels, scores, strict=True))[:_MOST_LABELS]:
        yield f"{label:<{longest}}  {score:.4f}"
    if len(labels) > _MOST_LABELS:
        yield f"and {len(labels) - _MOST_LABELS} more labels"


def _objects(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    every = list(zip(_texts(row["labels"]), row["scores"].ravel(), row["boxes"].reshape(-1, 4), strict=True))
    objects = [each for each in every if each[1] > 0]  # other rows of the request may have more
    longest = max((len(label) for label, _, _ in objects), default=0)
    for label, score, box in objects:
        yield f"{label:<{longest}}  {score:.4f}  {' '.join(f'{edge:.1f}' for edge in box)}"
    if not objects:
        yield "no object"


def _mask(row: Mapping[str, np.ndarray]) -> str:
    """Return the size of a mask and the classes in it; the size stands at the beginning of a PNG."""
    width, height = struct.unpack(">II", row[MASK].ravel()[0][16:24])
    return f"mask of {width} x {height} pixels: {', '.join(filter(None, _texts(row['labels'])))}"


def _entities(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    spans = row["offsets"].reshape(-1, 2)
    every = zip(_texts(row["tokens"]), _texts(row["labels"]), row["scores"].ravel(), spans, strict=True)
    entities = [each for each in every if each[3][0] >= 0 and each[1] and each[1] != _OUTSIDE]
    longest = max((len(each[0]) for each in entities), default=0)
    for token, label, score, (start, end) in entities:
        yield f"{token:<{longest}}  {label}  {score:.4f}  characters {start} to {end}"
    if not entities:
        yield f"no token is labelled but {_OUTSIDE}"


def _answer(row: Mapping[str, np.ndarray]) -> str:
    place = ""
    if {"start", "end"} <= set(row):
        place = f"  characters {int(row['start'].ravel()[0])} to {int(row['end'].ravel()[0])}"
    answer = _texts(row["answer"])[0]
    return f"{answer or '(no answer)'}  {float(row['score'].ravel()[0]):.4f}{place}"


def _fillings(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    tokens, scores = row["tokens"], row["scores"]
    tokens, scores = tokens.reshape(-1, tokens.shape[-1]), scores.reshape(-1, scores.shape[-1])
    for number, (words, shares) in enumerate(zip(tokens, scores, strict=True), 1):
        pairs = [f"{word} {share:.4f}" for word, share in zip(_texts(words), shares, strict=True) if word]
        if pairs:
            yield f"{f'mask {number}: ' if len(tokens) > 1 else ''}{'  '.join(pairs)}"


def _generated(row: Mapping[str, np.ndarray]) -> Iterator[str]:
    yield text_of(row)
    if "token_ids" in row:
        count = tokens_in(row["token_ids"])
        yield f"({lists.counted(count, 'token')}, finish_reason: {reason_of(row) or 'none'})"


def tokens_in(token_ids: np.ndarray) -> int:
    """Return the number of generated tokens in `token_ids`. Token ids of -1 are padding and are not counted."""
    return int((token_ids >= 0).sum())


def _tensor(name: str, array: np.ndarray) -> str:
    shape = " x ".join(map(str, array.shape)) or "one value"
    first = array.ravel()[:_MOST_VALUES]
    more = array.size > _MOST_VALUES
    if array.dtype == object:
        return f"{name}: {shape}: {', '.join(_texts(first))}{' ...' if more else ''}"
    numbers = ", ".join(f"{value:.6g}" for value in first.tolist())
    return f"{name}: {shape} {array.dtype}: {numbers}{', ...' if more else ''}"


def _texts(array: np.ndarray) -> list[str]:
    return [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in array.ravel()]


def _plain(value: Any) -> Any:
    """Return a value of an output as JSON can hold it: bytes become text, NaN and infinities become null."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
