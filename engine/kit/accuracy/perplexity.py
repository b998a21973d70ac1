"""Perplexity: how well a model predicts the tokens of a text, beside the original model on the same tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.accuracy.report import Perplexity
from engine.kit.inputs import corpus
from engine.reporting import Number

if TYPE_CHECKING:
    import numpy as np

    Answer = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]

FILE = "perplexity.json"
"""The file of a reference with the tokens of the text, the model's positions and the original's loss."""
_LARGEST = 700.0
"""The largest loss whose exponential JSON can hold."""


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
    length = corpus.window_length(longest)
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
    for window in corpus.windows(len(tokens), longest):
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
