"""Greedy generation, without a model: what follows from the logits, for rows of tokens that go through it together."""

# This very file is shipped in packages: it needs numpy alone (1 or 2) and nothing of this project.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Array = Any
"""A numpy array. numpy is imported where it is used, for this module to be readable without it."""

STOP, LENGTH = "stop", "length"
"""Why a row is finished: the model (or the caller) ended it, or it has as many tokens as it may have."""


@dataclass(frozen=True)
class Rules:
    """What `generate()` of transformers does with the logits before the largest is taken; names and order are its own.

    Source: transformers, `GenerationMixin._get_logits_processor` and `generation/logits_process.py`. A length counts
    what the decoder has seen: the prompt of a decoder-only model, the start token of another.
    """

    eos_token_id: Sequence[int] = ()
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    bad_words_ids: Sequence[Sequence[int]] = ()
    min_length: int = 0
    min_new_tokens: int = 0
    forced_bos_token_id: int | None = None
    forced_eos_token_id: Sequence[int] = ()
    suppress_tokens: Sequence[int] = ()
    begin_suppress_tokens: Sequence[int] = ()


class Greedy:
    """Rows that are generated together, each as if it were alone.

    The caller runs the model: `choose` takes the logits of every row's last position and returns the tokens to feed
    next. A finished row is fed its last token again, and what the model answers for it is ignored.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        rules: Rules,
        *,
        max_new_tokens: int | Sequence[int],
        ignore_eos: bool = False,
    ) -> None:
        """Begin. `max_new_tokens` is one for all rows or one for each; `ignore_eos` goes on after an end token.

        Raises ValueError for an empty prompt, or for less than one token.
        """
        limits = [max_new_tokens] * len(prompts) if isinstance(max_new_tokens, int) else list(max_new_tokens)
        if len(limits) != len(prompts) or any(limit < 1 for limit in limits):
            raise ValueError("max_new_tokens must be at least 1, for every row")
        if not all(len(prompt) for prompt in prompts):
            raise ValueError("a prompt must have at least one token")
        self.rules = rules
        self.prompts = [list(map(int, prompt)) for prompt in prompts]
        self.made: list[list[int]] = [[] for _ in prompts]
        """The new tokens of each row, the end token among them."""
        self.reasons: list[str | None] = [None] * len(prompts)
        """Why each row is finished, None while it is not."""
        self._limits = limits
        self._ends = frozenset() if ignore_eos else frozenset(rules.eos_token_id)

    @property
    def done(self) -> bool:
        """Whether every row is finished."""
        return all(reason is not None for reason in self.reasons)

    def stop(self, row: int) -> None:
        """Finish a row for a reason of the caller's own: a stop string, a client that went away."""
        self.reasons[row] = self.reasons[row] or STOP

    def choose(self, logits: Array) -> Array:
        """Take the logits of each row's last position, [rows, vocabulary]; return its next token, int64 [rows]."""
        import numpy as np

        for row, reason in enumerate(self.reasons):
            if reason is None:
                self._add(row, int(np.argmax(self._scores(row, logits[row]))))
        last = (made[-1] if made else prompt[-1] for made, prompt in zip(self.made, self.prompts, strict=True))
        return np.fromiter(last, dtype=np.int64)

    def _add(self, row: int, token: int) -> None:
        made = self.made[row]
        made.append(token)
        if token in self._ends:
            self.reasons[row] = STOP
        elif len(made) >= self._limits[row]:
            self.reasons[row] = LENGTH

    def _scores(self, row: int, logits: Array) -> Array:
        prompt, made = self.prompts[row], self.made[row]
        return scores(self.rules, logits, [*prompt, *made], prompt=len(prompt), longest=len(prompt) + self._limits[row])


def generate(step: Callable[[Array], Array], greedy: Greedy, tokens: Array) -> Iterator[Array]:
    """Yield the next token of every row, int64 [rows], until all are finished (`greedy.reasons` says which are).

    `step` runs the model on new tokens, int64 [rows, new], and returns the logits of the last of them,
    [rows, vocabulary]; it keeps the past itself. `tokens` are the first: the padded prompts.
    """
    while not greedy.done:
        chosen = greedy.choose(step(tokens))
        yield chosen
        tokens = chosen[:, None]


def padded(prompts: Sequence[Sequence[int]], pad: int, *, left: bool) -> tuple[Array, Array]:
    """Return prompts as one batch: tokens and mask, int64 [rows, longest].

    What is continued is padded on the left, so that its end is where the answer begins; what an encoder reads is padded
    on the right, for its positions are counted from the first column.
    """
    import numpy as np

    longest = max(map(len, prompts))
    tokens = np.full((len(prompts), longest), pad, dtype=np.int64)
    mask = np.zeros_like(tokens)
    for row, prompt in enumerate(prompts):
        place = slice(longest - len(prompt), None) if left else slice(len(prompt))
        tokens[row, place] = prompt
        mask[row, place] = 1
    return tokens, mask


def positions(mask: Array, new: int) -> Array:
    """Return the positions of the last `new` tokens, int64 [rows, new], counted from the mask; 0 for padding."""
    import numpy as np

    return np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, mask.shape[1] - new :].astype(np.int64)


def scores(rules: Rules, logits: Array, tokens: Sequence[int], *, prompt: int, longest: int) -> Array:
    """Return the scores of one row's next token, [vocabulary]: the logits, with the rules applied.

    `tokens` is all that the decoder has seen, `prompt` of them given to it; `longest` is how many there may be at last.
    """
    import numpy as np

    seen, changed = len(tokens), np.array(logits, dtype=np.float32)
    if rules.repetition_penalty != 1.0:
        _penalise(changed, tokens, rules.repetition_penalty)
    banned: list[int] = []
    if 0 < rules.no_repeat_ngram_size <= seen:
        banned += _repeating(tokens, rules.no_repeat_ngram_size)
    banned += _ending_a_bad_word(rules, tokens)
    if seen < rules.min_length or seen - prompt < rules.min_new_tokens:
        banned += rules.eos_token_id
    changed[banned] = -np.inf
    if rules.forced_bos_token_id is not None and seen == 1:
        _force(changed, [rules.forced_bos_token_id])
    if rules.forced_eos_token_id and seen == longest - 1:
        _force(changed, rules.forced_eos_token_id)
    changed[list(rules.suppress_tokens)] = -np.inf
    if seen == _beginning(rules, prompt):
        changed[list(rules.begin_suppress_tokens)] = -np.inf
    return changed


def _penalise(changed: Array, tokens: Sequence[int], penalty: float) -> None:
    """Make every token that was seen less likely, once, however often it was seen."""
    import numpy as np

    seen = np.unique(np.asarray(tokens))
    old = changed[seen]
    changed[seen] = np.where(old < 0, old * penalty, old / penalty)


def _repeating(tokens: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would end a run of `size` tokens that was seen before."""
    import numpy as np

    runs = np.lib.stride_tricks.sliding_window_view(np.asarray(tokens), size)
    begun = list(tokens[len(tokens) - size + 1 :])
    return [int(token) for token in runs[(runs[:, :-1] == begun).all(axis=1), -1]]


def _ending_a_bad_word(rules: Rules, tokens: Sequence[int]) -> list[int]:
    """Return the tokens that would complete a forbidden sequence; an end token alone is never one."""
    ends = [[end] for end in rules.eos_token_id]
    words = (list(word) for word in rules.bad_words_ids if list(word) not in ends)
    return [word[-1] for word in words if list(tokens[max(len(tokens) - len(word) + 1, 0) :]) == word[:-1]]


def _force(changed: Array, only: Sequence[int]) -> None:
    import numpy as np

    changed[:] = -np.inf
    changed[list(only)] = 0


def _beginning(rules: Rules, prompt: int) -> int:
    """Return how many tokens were seen when the first free one is chosen."""
    return prompt if prompt > 1 or rules.forced_bos_token_id is None else prompt + 1
