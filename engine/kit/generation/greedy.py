"""Greedy generation: chooses the next token of each row from its logits. The caller runs the model."""

# This very file is shipped in packages: it needs numpy alone (1 or 2) and nothing of this project.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

Sampler = Callable[["Array"], int]
"""Takes the scores of a row, [vocabulary], and returns the next token."""
Array = Any
"""A numpy array. The functions of this module import numpy themselves, so that importing the module needs no numpy."""

STOP, LENGTH = "stop", "length"
"""The reasons why a row is finished.

`STOP`: the model or the caller ended the row. `LENGTH`: the row reached its token limit.
"""


@dataclass(frozen=True)
class Rules:
    """Logits processors: the rules that `generate()` of transformers applies before it takes the largest logit.

    The rules have the names and the order of transformers' `GenerationMixin._get_logits_processor` and
    `generation/logits_process.py`. A length, such as `min_length`, counts the decoder's tokens, including the prompt of
    a decoder-only model or the start token of an encoder-decoder model.
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
    """Rows of tokens that are generated as one batch; no row depends on another.

    The caller runs the model: `choose` takes the logits of each row's last position and returns the tokens to feed
    next. For a finished row, `choose` ignores the logits and returns the row's last token again.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        rules: Rules,
        *,
        max_new_tokens: int | Sequence[int],
        ignore_eos: bool = False,
        samplers: Sequence[Sampler | None] = (),
        penalties: Sequence[float | None] = (),
    ) -> None:
        """Keep the prompts, which are lists of token ids; `max_new_tokens` is one number for all rows or for each row.

        `samplers` draw the tokens of rows, and `penalties` are repetition penalties of rows; None, or no entry, stands
        for the token with the largest score and for the penalty of the rules. With `ignore_eos`, rows go on after an
        end token. Raises ValueError where a prompt is empty, or where `max_new_tokens` is below 1.
        """
        limits = [max_new_tokens] * len(prompts) if isinstance(max_new_tokens, int) else list(max_new_tokens)
        if len(limits) != len(prompts) or any(limit < 1 for limit in limits):
            raise ValueError("max_new_tokens must be at least 1, for every row")
        if not all(len(prompt) for prompt in prompts):
            raise ValueError("a prompt must have at least one token")
        self._rules = [
            rules if penalty is None else replace(rules, repetition_penalty=penalty)
            for penalty in penalties or [None] * len(prompts)
        ]
        self._samplers = list(samplers) or [None] * len(prompts)
        self.prompts = [list(map(int, prompt)) for prompt in prompts]
        self.made: list[list[int]] = [[] for _ in prompts]
        """The ids of the tokens generated so far in each row, including the end token."""
        self.reasons: list[str | None] = [None] * len(prompts)
        """For each row the reason why the row is finished, `STOP` or `LENGTH`; None for a row that goes on."""
        self._limits = limits
        self._ends = frozenset() if ignore_eos else frozenset(rules.eos_token_id)

    @property
    def done(self) -> bool:
        """Whether every row of the batch is finished."""
        return all(reason is not None for reason in self.reasons)

    def stop(self, row: int) -> None:
        """Finish a row at the caller's request, for example after a stop string or when the client has disconnected."""
        self.reasons[row] = self.reasons[row] or STOP

    def choose(self, logits: Array) -> Array:
        """Take the logits of the last positions, [rows, vocabulary]; return each row's next token, int64 [rows]."""
        import numpy as np

        for row, reason in enumerate(self.reasons):
            if reason is None:
                scores_of_row = self._scores(row, logits[row])
                sampler = self._samplers[row]
                self._add(row, int(np.argmax(scores_of_row)) if sampler is None else sampler(scores_of_row))
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
        return scores(
            self._rules[row], logits, [*prompt, *made], prompt=len(prompt), longest=len(prompt) + self._limits[row]
        )


def generate(step: Callable[[Array], Array], greedy: Greedy, tokens: Array) -> Iterator[Array]:
    """Yield one new token id for each row at a time, as int64 [rows], until all rows are finished.

    The function `step` runs the model on new tokens, int64 [rows, new], returns the logits of the last position, [rows,
    vocabulary], and keeps the KV cache. `tokens` are the ids of the padded prompts, int64 [rows, longest prompt].
    """
    while not greedy.done:
        chosen = greedy.choose(step(tokens))
        yield chosen
        tokens = chosen[:, None]


def padded(prompts: Sequence[Sequence[int]], pad: int, *, left: bool) -> tuple[Array, Array]:
    """Return the prompts as one padded batch: token ids and attention mask, int64 [rows, longest prompt].

    The prompts of a decoder-only model are padded on the left, so that the answer follows the prompt directly. The
    texts of an encoder are padded on the right, because positions count from the first column.
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
    """Return the position ids of the last `new` tokens of each row, int64 [rows, new].

    Positions are counted without padding, and padding gets the position 0.
    """
    import numpy as np

    return np.maximum(np.cumsum(mask, axis=1) - 1, 0)[:, mask.shape[1] - new :].astype(np.int64)


def scores(rules: Rules, logits: Array, tokens: Sequence[int], *, prompt: int, longest: int) -> Array:
    """Return the scores of one row's next token, [vocabulary]: the logits after the rules were applied.

    `tokens` are all tokens of the decoder so far, beginning with the prompt; `prompt` is the number of the prompt's
    tokens. `longest` is the largest number of tokens that the row may have, including the prompt.
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
    """Repetition penalty: make each token that occurs in the row less likely, however often the token occurs."""
    import numpy as np

    seen = np.unique(np.asarray(tokens))
    old = changed[seen]
    changed[seen] = np.where(old < 0, old * penalty, old / penalty)


def _repeating(tokens: Sequence[int], size: int) -> list[int]:
    """Return the ids of the next tokens that would repeat an n-gram of `size` tokens."""
    import numpy as np

    runs = np.lib.stride_tricks.sliding_window_view(np.asarray(tokens), size)
    begun = list(tokens[len(tokens) - size + 1 :])
    return [int(token) for token in runs[(runs[:, :-1] == begun).all(axis=1), -1]]


def _ending_a_bad_word(rules: Rules, tokens: Sequence[int]) -> list[int]:
    """Return the ids of the next tokens that would complete a forbidden sequence; a single end token is allowed."""
    ends = [[end] for end in rules.eos_token_id]
    words = (list(word) for word in rules.bad_words_ids if list(word) not in ends)
    return [word[-1] for word in words if list(tokens[max(len(tokens) - len(word) + 1, 0) :]) == word[:-1]]


def _force(changed: Array, only: Sequence[int]) -> None:
    import numpy as np

    changed[:] = -np.inf
    changed[list(only)] = 0


def _beginning(rules: Rules, prompt: int) -> int:
    """Return the number of tokens before the first freely chosen token: the prompt's, and a forced first token."""
    return prompt if prompt > 1 or rules.forced_bos_token_id is None else prompt + 1
