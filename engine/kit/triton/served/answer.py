"""Question answering: turns start and end logits into the text of the answer, as `{name}_postprocess`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Work:
    """Finds the most probable answer span; the setting `longest` is the largest number of tokens of a span.

    Spans are chosen as in the question-answering pipeline of transformers (until 5.2). The softmax of the start logits
    over the context gives the probability that a span starts at a token; the softmax of the end logits gives the
    probability that a span ends at a token. The score of a span is the probability of its start times the probability
    of its end, and the span with the largest score is the answer. An answer consists of whole tokens and is not widened
    to whole words.
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        self.longest = settings["longest"]

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `answer`, `score`, `start` and `end`, each [rows, 1].

        `start` and `end` count characters of the context. Inputs: `start_logits` and `end_logits` [rows, tokens],
        `offsets` [rows, tokens, 2] with -1 outside the context, and TEXT [rows, 2]. A row without any token of the
        context gets the answer "" with the score 0, the start -1 and the end -1.
        """
        import numpy as np

        offsets = given["offsets"]
        inside = offsets[:, :, 0] >= 0
        begin, end = (_log_shares(given[name], inside) for name in ("start_logits", "end_logits"))
        rows, tokens = inside.shape
        length = min(self.longest, tokens)
        spans = np.full((rows, tokens, length), -np.inf)
        for more in range(length):
            spans[:, : tokens - more, more] = begin[:, : tokens - more] + end[:, more:]
        flat = spans.reshape(rows, -1)
        first, more = np.divmod(flat.argmax(axis=1), length)
        every = np.arange(rows)
        start, behind = offsets[every, first, 0], offsets[every, first + more, 1]
        behind = np.where(inside.any(axis=1), behind, -1)
        contexts = (row[1].decode("utf-8") for row in given["TEXT"].tolist())
        answers = [text[a:b].encode("utf-8") for text, a, b in zip(contexts, start, behind, strict=True)]
        return {
            "answer": np.array(answers, dtype=object)[:, None],
            "score": np.exp(flat.max(axis=1)).astype(np.float32)[:, None],
            "start": start[:, None],
            "end": behind[:, None],
        }


def _log_shares(logits: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return each token's log-softmax over the tokens inside the context, float64; -inf for tokens outside.

    Logarithms are added where probabilities would be multiplied, because the product of two small probabilities may
    round to 0.
    """
    import numpy as np

    kept = np.where(inside, logits.astype(np.float64), -np.inf)
    largest = kept.max(axis=1, keepdims=True)
    moved = kept - np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # all tokens may be outside the context
        return np.asarray(np.where(inside, moved - np.log(np.exp(moved).sum(axis=1, keepdims=True)), -np.inf))
