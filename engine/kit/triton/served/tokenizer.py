"""Texts in, the tensors of a text model out: the work of `{name}_tokenizer`."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Work:
    """Each row of TEXT holds one text, or two that belong together.

    The tokenizer.json beside this file says how texts are cut and padded. Settings: `outputs`, the dtype of each
    tensor, `offsets_of`, the number of the text whose characters `offsets` count, and `max_text_bytes`, the most bytes
    of a text: the tokenizer reads all of a text before it cuts the text, and no other request is served meanwhile. A
    `prompt` is put in front of the first text of each row. With `whole_words`, the place of a token is that of its
    word. With `windows`, a long text becomes several windows, each a row of the outputs, and `window_rows` tells to
    which row of TEXT each belongs. With `apart`, a row holds any number of texts, each with tokens of its own. With
    `buckets`, the texts of a request are padded to the smallest of these lengths that holds them, so that Triton can
    join requests.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        import numpy as np
        import tokenizers

        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.dtypes = {name: np.dtype(dtype) for name, dtype in settings["outputs"].items()}
        self.text = settings["offsets_of"]
        self.max_text_bytes = settings["max_text_bytes"]
        self.buckets, self.prompt = settings.get("buckets", []), settings.get("prompt", "")
        self.whole_words, self.windows = settings.get("whole_words", False), settings.get("windows", False)
        self.apart = settings.get("apart", False)
        self.readers = {
            "input_ids": lambda row: row.ids,
            "attention_mask": lambda row: row.attention_mask,
            "token_type_ids": lambda row: row.type_ids,
            "position_ids": lambda row: range(len(row.ids)),
            "offsets": self.offsets,
        }

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return each output, [rows, tokens], or with `apart` [rows, texts, tokens].

        Raises ValueError for what is no text, and for a wrong number of texts a row.
        """
        import numpy as np

        texts = given["TEXT"]
        rows = list(enumerate(self.encoded(texts.reshape(-1, 1).tolist() if self.apart else texts.tolist())))
        if self.windows:
            rows = [(number, window) for number, row in rows for window in (row, *row.overflowing)]
        outputs = {
            name: np.array([self.readers[name](row) for _, row in rows], dtype=dtype)
            for name, dtype in self.dtypes.items()
            if name in self.readers
        }
        if self.apart:
            outputs = {name: array.reshape(*texts.shape, -1) for name, array in outputs.items()}
        return outputs if not self.windows else {**outputs, "window_rows": np.array([[number] for number, _ in rows])}

    def encoded(self, rows: list[list[bytes]]) -> list[Any]:
        """Return the rows as tokens, all of one length. Raises ValueError as calling does."""
        if not rows or any(len(row) not in (1, 2) for row in rows):
            form = "at least one text" if self.apart else "one text, or two that belong together"
            raise ValueError(f"TEXT: each row holds {form}")
        size = max(len(text) for row in rows for text in row)
        if size > self.max_text_bytes:
            raise ValueError(f"TEXT: a text of {size} bytes; this model takes at most {self.max_text_bytes} bytes")
        try:
            texts = [[text.decode("utf-8") for text in row] for row in rows]
            if self.prompt:
                texts = [[self.prompt + first, *rest] for first, *rest in texts]
            if len(texts) == 1:  # the threads behind encode_batch cost more than they give
                made = [self.tokenizer.encode(texts[0][0], texts[0][1] if len(texts[0]) > 1 else None)]
            else:
                made = self.tokenizer.encode_batch([row[0] if len(row) == 1 else tuple(row) for row in texts])
        except Exception as error:
            raise ValueError(f"TEXT: {_said(error)}") from error
        if not all(any(row.attention_mask) for row in made):
            raise ValueError("TEXT: a text without a single token: it is empty, and the tokenizer adds none of its own")
        self.pad(made)
        return made

    def pad(self, rows: list[Any]) -> None:
        """Pad rows of one length to the smallest bucket that holds them."""
        if not self.buckets:
            return
        tokens = len(rows[0].ids)
        bucket = min((length for length in self.buckets if length >= tokens), default=tokens)
        how = self.tokenizer.padding or {}
        for row in rows if bucket > tokens else ():
            row.pad(bucket, **{name: how[name] for name in ("direction", "pad_id", "pad_type_id", "pad_token")})

    def offsets(self, row: Any) -> list[tuple[int, int]]:
        """Return where in its text each token stands, first and behind last character; -1, -1 for any other token."""
        places = _of_words(row) if self.whole_words else row.offsets
        own = zip(places, row.sequence_ids, row.attention_mask, row.special_tokens_mask, strict=True)
        return [
            place if text == self.text and visible and not special else (-1, -1)
            for place, text, visible, special in own
        ]


def _of_words(row: Any) -> list[tuple[int, int]]:
    """Return for each token the place of its word: from the first character of its tokens to behind the last."""
    words: dict[tuple[int, int], tuple[int, int]] = {}
    keys = list(zip(row.sequence_ids, row.word_ids, strict=True))
    for key, (start, end) in zip(keys, row.offsets, strict=True):
        first, last = words.get(key, (start, end))
        words[key] = (min(first, start), max(last, end))
    return [place if key[1] is None else words[key] for key, place in zip(keys, row.offsets, strict=True)]


def _said(error: Exception) -> str:
    """Return what went wrong, in words that fit whoever sent the text."""
    if "too short to respect" in str(error):
        return "the first text leaves no room for the second: it is longer than the model can take"
    return str(error)
