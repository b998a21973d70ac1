"""The rules by which transformers' question-answering pipeline (until 5.2) chose an answer, written once more."""

import numpy as np


def windows(tokenizer, row, *, stride, longest):
    """The windows of a question and its context, as transformers' own tokenizer cuts them."""
    return tokenizer(
        [row[0]], [row[1]], truncation="only_second", max_length=longest, stride=stride or 0, padding=True,
        return_overflowing_tokens=stride is not None, return_offsets_mapping=True,
    )  # fmt: skip


def expected(tokenizer, row, logits, *, impossible, words, stride, longest, length):
    """The best answer of a row by the pipeline's rules; `logits` [2, windows, tokens]."""
    encoded, context = windows(tokenizer, row, stride=stride, longest=longest), row[1]
    answers, least = [], 1.0
    for window in range(len(encoded["input_ids"])):
        inside = np.array([each == 1 for each in encoded.sequence_ids(window)])
        counted = inside.copy()
        counted[0] |= impossible
        shares = []
        for scores in logits[:, window].astype(np.float64):
            powers = np.where(counted, np.exp(scores), 0)
            shares.append(powers / max(powers.sum(), 1e-300))
        least = min(least, shares[0][0] * shares[1][0])
        begin, end = (np.where(inside, each, 0) for each in shares)
        for a in np.flatnonzero(inside):
            for b in range(a, min(a + length, len(inside))):
                if inside[b]:
                    place = [encoded["offset_mapping"][window][a][0], encoded["offset_mapping"][window][b][1]]
                    if words:
                        first, last = (encoded.token_to_word(window, int(each)) for each in (a, b))
                        place = [
                            encoded.word_to_chars(window, first, 1).start,
                            encoded.word_to_chars(window, last, 1).end,
                        ]
                    answers.append((begin[a] * end[b], *place))
    best = max(answers, key=lambda each: each[0], default=(0, -1, -1))
    if impossible and (not answers or least > best[0]):
        return b"", least, -1, -1
    return context[best[1] : best[2]].encode() if answers else b"", best[0], best[1], best[2]
