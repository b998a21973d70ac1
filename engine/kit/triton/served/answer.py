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
    of its end, and the span with the largest score is the answer.

    With the setting `no_answer`, both softmaxes also cover the first token of the row, which stands for "no answer"
    (SQuAD 2). Its score is the smallest of the row's windows; where it is the largest score, the answer is "".
    """

    def __init__(self, _: Path, settings: dict[str, Any]) -> None:
        self.longest = settings["longest"]
        self.no_answer = settings.get("no_answer", False)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `answer`, `score`, `start` and `end`, each [rows, 1].

        `start` and `end` count characters of the context. Inputs: `start_logits` and `end_logits` [windows, tokens],
        `offsets` [windows, tokens, 2] with -1 outside the context, and TEXT [rows, 2]; `window_rows` [windows, 1] where
        a row of TEXT has several windows, and `attention_mask` [windows, tokens] with the setting `no_answer`. A row
        without any token of the context, or without an answer, gets the answer "", the start -1 and the end -1.
        """
        import numpy as np

        offsets, texts = given["offsets"], given["TEXT"].tolist()
        inside = offsets[:, :, 0] >= 0
        windows, tokens = inside.shape
        every = np.arange(windows)
        counted = inside.copy()
        first = given["attention_mask"].argmax(axis=1) if self.no_answer else None
        if first is not None:
            counted[every, first] = True
        begin, end = (_log_shares(given[name], counted) for name in ("start_logits", "end_logits"))
        nothing = np.full(windows, -np.inf) if first is None else begin[every, first] + end[every, first]
        begin, end = (np.where(inside, shares, -np.inf) for shares in (begin, end))
        length = min(self.longest, tokens)
        spans = np.full((windows, tokens, length), -np.inf)
        for more in range(length):
            spans[:, : tokens - more, more] = begin[:, : tokens - more] + end[:, more:]
        flat = spans.reshape(windows, -1)
        starts, more = np.divmod(flat.argmax(axis=1), length)
        rows = given["window_rows"][:, 0] if "window_rows" in given else every
        best = {
            "best": flat.max(axis=1),
            "start": offsets[every, starts, 0],
            "end": offsets[every, starts + more, 1],
            "nothing": nothing,
        }
        return _answers(texts, rows, **best)


def _answers(texts: list[list[bytes]], rows: Any, *, best: Any, start: Any, end: Any, nothing: Any) -> dict[str, Any]:
    """Return the best answer of each row, by the best span of each window: its log score, its start and its end.

    `nothing` has each window's log score of no answer, or -inf.
    """
    import numpy as np

    answers: list[tuple[bytes, float, int, int]] = []
    for number, row in enumerate(texts):
        own = np.flatnonzero(rows == number)
        window = own[best[own].argmax()]
        a, b = int(start[window]), int(end[window])
        least = nothing[own].min()
        if not np.isfinite(best[window]) or least > best[window]:
            answers.append((b"", float(np.exp(least)), -1, -1))
        else:
            answers.append((row[1].decode("utf-8")[a:b].encode("utf-8"), float(np.exp(best[window])), a, b))
    columns = list(zip(*answers, strict=True))
    kinds = {"answer": object, "score": np.float32, "start": np.int64, "end": np.int64}
    return {
        name: np.array(column, dtype=kind)[:, None] for (name, kind), column in zip(kinds.items(), columns, strict=True)
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
