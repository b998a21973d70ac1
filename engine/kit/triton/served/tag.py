"""Token classification: turns logits into a label for each token, and tokens into entities, as `{name}_postprocess`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OUTSIDE = "O"
"""The label of tokens that belong to no entity."""


class Work:
    """The setting `labels` names the classes; vocabulary.json lists the text of each token id.

    The setting `scores` names what makes scores of the model's numbers: `softmax` of logits, `exp` of logarithms, or
    `number` for numbers that are scores already.

    With the setting `aggregation_strategy` tokens are grouped to entities by the rules of the token-classification
    pipeline of transformers 5.23. `simple` takes the best label of each token. The others give all tokens of a word one
    label: `first` that of the first token, `max` that of the token with the largest score, and `average` that of the
    largest mean score. Neighbours of one kind are an entity; a label that begins with `B-` begins another entity.
    Settings for the borders of words: `prefixed` (whether the vocabulary marks the tokens inside a word) and `unknown`
    (the id of the token for unknown words, or null).
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np

        tokens = json.loads((folder / "vocabulary.json").read_text("utf-8"))
        self.names, self.scores = settings["labels"], settings["scores"]
        self.labels = np.array([*(label.encode("utf-8") for label in self.names), b""], dtype=object)
        # The empty text at the end stands for padding and for ids that no token has.
        self.tokens = np.array([*(token.encode("utf-8") for token in tokens), b""], dtype=object)
        self.lengths = [*map(len, tokens), 0]
        self.strategy = settings.get("aggregation_strategy")
        self.prefixed, self.unknown = settings.get("prefixed"), settings.get("unknown")

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return `labels`, `scores` and `tokens`, each [rows, tokens]; with a strategy also the entities.

        Inputs: `logits` [rows, tokens, classes], `input_ids` and `attention_mask` [rows, tokens]; for entities also
        `offsets` [rows, tokens, 2] and TEXT [rows, 1]. Padding gets an
        empty label, an empty token and the score 0.

        The entities of a row: `entities` and `entity_texts` [rows, entities], `entity_scores` [rows, entities], and
        `entity_offsets` [rows, entities, 2], in characters. Rows with fewer entities are filled up with "", 0 and -1.
        """
        import numpy as np

        logits = given["logits"].astype(np.float32, copy=False)
        visible = given["attention_mask"] != 0
        shares = logits
        if self.scores != "number":
            shares = np.exp(logits - (logits.max(axis=2, keepdims=True) if self.scores == "softmax" else 0))
        if self.scores == "softmax":
            shares /= shares.sum(axis=2, keepdims=True)
        last = len(self.tokens) - 1
        ids = np.minimum(given["input_ids"], last)
        answer = {
            "labels": self.labels[np.where(visible, logits.argmax(axis=2), -1)],
            "scores": np.where(visible, shares.max(axis=2), np.float32(0)),
            "tokens": self.tokens[np.where(visible, ids, last)],
        }
        if self.strategy is not None:
            texts = [row[0].decode("utf-8") for row in given["TEXT"].tolist()]
            rows = zip(texts, ids.tolist(), given["offsets"].tolist(), shares, strict=True)
            answer |= _padded([list(self.entities(*row)) for row in rows])
        return answer

    def entities(self, text: str, ids: list[int], offsets: list[list[int]], shares: Any) -> Iterator[_Entity]:
        """Yield the entities of a text, given its tokens' ids, their places in the text, and the scores of classes."""
        words: list[list[int]] = []
        for number, (start, end) in enumerate(offsets):
            if start < 0:  # a special token, or padding
                continue
            inside = self.strategy != "simple" and self._continues(text, ids[number], start, end)
            if words and inside:
                words[-1].append(number)
            else:
                words.append([number])
        groups: list[list[_Entity]] = []
        for word in words:
            label, score = self._decided(shares[word])
            entity = _Entity(self.names[label], score, offsets[word[0]][0], offsets[word[-1]][1])
            if groups and not entity.name.startswith("B-") and _kind(entity.name) == _kind(groups[-1][-1].name):
                groups[-1].append(entity)
            else:
                groups.append([entity])
        for group in groups:
            name = group[0].name.split("-", 1)[-1]
            if name != _OUTSIDE:
                score = sum(each.score for each in group) / len(group)
                start, end = group[0].start, group[-1].end
                yield _Entity(name, score, start, end, text[start:end])

    def _continues(self, text: str, token: int, start: int, end: int) -> bool:
        """Tell whether a token continues the word of the token before it."""
        if token == self.unknown:
            return False
        if self.prefixed:  # such as ##ing: the text of the token is longer than its place
            return self.lengths[token] != end - start
        return start > 0 and " " not in text[start - 1 : start + 1]

    def _decided(self, shares: Any) -> tuple[int, float]:
        """Return the label and the score of a word, by the scores of its tokens, [tokens, classes]."""
        if self.strategy == "average":
            chosen = shares.mean(axis=0)
        else:
            chosen = shares[shares.max(axis=1).argmax() if self.strategy == "max" else 0]
        label = int(chosen.argmax())
        return label, float(chosen[label])


class _Entity:
    """A word with its label, or an entity: its score, its place in the text, and its text."""

    def __init__(self, name: str, score: float, start: int, end: int, text: str = "") -> None:
        self.name, self.score, self.start, self.end, self.text = name, score, start, end, text


def _kind(label: str) -> str:
    """Return a label without the prefix that tells the beginning of an entity from its continuation."""
    return label[2:] if label.startswith(("B-", "I-")) else label


def _padded(rows: list[list[_Entity]]) -> dict[str, Any]:
    """Return the entities of all rows as arrays."""
    import numpy as np

    shape = (len(rows), max(map(len, rows)))
    names, texts = np.full(shape, b"", dtype=object), np.full(shape, b"", dtype=object)
    scores, places = np.zeros(shape, np.float32), np.full((*shape, 2), -1, np.int64)
    for row, entities in enumerate(rows):
        for column, each in enumerate(entities):
            names[row, column], texts[row, column] = each.name.encode("utf-8"), each.text.encode("utf-8")
            scores[row, column], places[row, column] = each.score, (each.start, each.end)
    return {"entities": names, "entity_texts": texts, "entity_scores": scores, "entity_offsets": places}
