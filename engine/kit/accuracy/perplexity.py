"""Perplexity: how well a model predicts the tokens of a text, beside the original model on the same tokens."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.accuracy.report import Perplexity
from engine.kit.inputs import tokenizer as tokenizers
from engine.reporting import Number
from engine.text import sizes

if TYPE_CHECKING:
    import numpy as np

    Answer = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]

FILE = "perplexity.json"
"""The file of a reference with the tokens of the text, the model's positions and the original's loss."""
_LARGEST = 700.0
"""The largest loss whose exponential JSON can hold."""
LIMIT = 4096
"""The number of tokens at the beginning of a text that are read where a recipe names no number."""
LEAST = 128
"""The least number of tokens of a text; the perplexity of a shorter text says little."""
LENGTH = 256
"""The number of tokens of a window, which keeps the logits of a window small."""
_BYTES = 64
"""The number of bytes of a text that are read for each token; a token of prose takes four."""


def of_original(answer: Answer, tokens: list[int], longest: int | None, out: Path) -> float:
    """Run the original model on the tokens of a text, and write tokens and loss to `out`; return the perplexity."""
    loss = _loss(answer, tokens, longest)
    content = {"tokens": tokens, "longest": longest, "loss": loss if math.isfinite(loss) else None}
    (out / FILE).write_text(json.dumps(content) + "\n", "utf-8")
    return _exponential(loss)


def of_built(answer: Answer, reference: Path) -> Perplexity | None:
    """Return the perplexity of the built model and of the original on the same tokens; None where there is no text.

    The perplexity is None where a model gives no finite number.
    """
    path = reference / FILE
    if not path.is_file():
        return None
    content = json.loads(path.read_text("utf-8"))
    tokens, longest, original = content["tokens"], content["longest"], content["loss"]
    length = window_length(longest)
    print(f"perplexity on {len(tokens)} tokens, in windows of {length} tokens")
    loss = _loss(answer, tokens, longest)
    compared = original is not None and math.isfinite(loss)
    measured = Perplexity(
        ratio=_exponential(loss - original) if compared else None,
        value=_exponential(loss) if math.isfinite(loss) else None,
        original=None if original is None else _exponential(original),
        tokens=len(tokens) - 1,
        length=length,
        stride=length // 2,
    )
    print(measured.line(Number("perplexity", digits=6, significant=True)))
    return measured


def _loss(answer: Answer, tokens: list[int], longest: int | None) -> float:
    """Return the mean negative logarithm of the probability that a model gives each token but the first."""
    import numpy as np

    ids = np.array([tokens], np.int64)
    total = 0.0
    for window in windows(len(tokens), longest):
        part = ids[:, window.start : window.end]
        logits = answer({"input_ids": part, "attention_mask": np.ones_like(part)})["logits"]
        total += _surprise(logits[0, window.seen - 1 : -1], part[0, window.seen :])
    return total / (len(tokens) - 1)


def _surprise(logits: np.ndarray, tokens: np.ndarray) -> float:
    """Return the sum of the negative logarithms of the tokens' probabilities; `logits` are [tokens, vocabulary]."""
    import numpy as np

    total = 0.0
    for row, token in zip(logits, tokens, strict=True):  # row by row: a vocabulary may have 250 000 entries
        scores = row.astype(np.float64)
        largest = scores.max()
        total += float(largest + np.log(np.exp(scores - largest).sum()) - scores[token])
    return total


def _exponential(loss: float) -> float:
    return math.exp(min(loss, _LARGEST))


@dataclass(frozen=True)
class Window:
    """A part of the tokens that a model reads in one call: the first `seen` tokens are context, and are not scored."""

    start: int
    end: int
    seen: int


def text_of(path: Path, limit: int = LIMIT) -> str:
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


def tokens_of(path: Path, checkpoint: Path, limit: int = LIMIT) -> list[int]:
    """Return the first tokens of a text file, at most `limit`, as the checkpoint's tokenizer makes them.

    Raises StepError for a file that `text_of` refuses, too few tokens, and a model without a tokenizer.
    """
    text = text_of(path, limit)
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
