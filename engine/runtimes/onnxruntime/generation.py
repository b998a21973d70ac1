"""The driver: graphs with a past, run by ONNX Runtime call after call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.generation import greedy
from engine.kit.onnx import graphs, past
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.runner import Runner

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

    Tensors = Mapping[str, np.ndarray]
    Step = Callable[[np.ndarray, np.ndarray], np.ndarray]

_FIRST = 0
"""The token that a decoder begins with where only time is measured: which one it is makes no difference."""


def runner(artifact: Path, *, name: str, threads: int, new_tokens: int = 0, level: str | None = None) -> Runner:
    """Return the runner of an artifact that generates text.

    `run` answers as the model does in one pass: `input_ids`, `attention_mask` [batch, sequence], behind an encoder
    also `decoder_input_ids` [batch, target], -> `logits`. What is prepared generates `new_tokens` for each row of
    `input_ids`, whatever they are: no token ends it. Raises StepError where ONNX Runtime refuses a graph.
    """
    sessions = [ort.session(artifact / folder, threads=threads, level=level) for folder in graphs.folders(artifact)]
    return Runner(
        name,
        lambda inputs: {"logits": _whole(sessions, inputs)},
        lambda inputs: lambda: generate(sessions, inputs, new_tokens, start=_FIRST),
    )


def generate(
    sessions: list[onnxruntime.InferenceSession], inputs: Tensors, new_tokens: int, *, start: int
) -> np.ndarray:
    """Return just so many new tokens for each row, int64 [batch, new_tokens], each the likeliest.

    `start` is what a decoder behind an encoder begins with.
    """
    import numpy as np

    step, ids, mask = _begun(sessions, inputs)
    if len(sessions) > 1:
        ids = np.full((len(ids), 1), start, dtype=np.int64)
        mask = np.ones_like(ids)
    shown = iter((mask,))
    loop = greedy.Greedy(ids.tolist(), greedy.Rules(), max_new_tokens=new_tokens)

    def last(tokens: np.ndarray) -> np.ndarray:
        return step(tokens, next(shown, np.ones_like(tokens)))[:, -1]

    return np.stack(list(greedy.generate(last, loop, ids)), axis=1)


def _whole(sessions: list[onnxruntime.InferenceSession], inputs: Tensors) -> np.ndarray:
    """Return the logits of every position, [batch, tokens, vocabulary].

    The first half goes in with an empty past; then one token alone, as in generation, and the rest, each behind what
    went before: so that every case shows what the past is worth.
    """
    import numpy as np

    step, ids, mask = _begun(sessions, inputs)
    if len(sessions) > 1:
        ids = inputs["decoder_input_ids"]
        mask = np.ones_like(ids)
    half = (ids.shape[1] + 1) // 2
    ends = dict.fromkeys((half, min(half + 1, ids.shape[1]), ids.shape[1]))
    return np.concatenate([step(ids[:, a:b], mask[:, a:b]) for a, b in zip((0, *ends), ends, strict=False)], axis=1)


def _begun(sessions: list[onnxruntime.InferenceSession], inputs: Tensors) -> tuple[Step, np.ndarray, np.ndarray]:
    """Return a function that goes on from where the last call of it ended, and the prompt and its mask."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    if len(sessions) == 1:
        return _going_on(sessions[0], len(ids), {}), ids, mask
    encoder, decoder = sessions
    seen = {
        past.becoming(name): array
        for name, array in ort.run(encoder, {"input_ids": ids, "attention_mask": mask}).items()
    }
    return _going_on(decoder, len(ids), {"encoder_attention_mask": mask, **seen}), ids, mask


def _going_on(session: onnxruntime.InferenceSession, rows: int, fixed: Tensors) -> Step:
    """Return a function from tokens and their mask, [rows, new], to logits [rows, new, vocabulary].

    It keeps the past between calls. `fixed` goes into every call.
    """
    import numpy as np

    held = {
        value.name: np.zeros((rows, value.shape[1], 0, value.shape[3]), dtype=np.float32)
        for value in session.get_inputs()
        if value.name.startswith(f"{past.PAST}.") and value.name not in fixed
    }
    seen = np.zeros((rows, 0), dtype=np.int64)

    def step(tokens: np.ndarray, shown: np.ndarray) -> np.ndarray:
        nonlocal seen
        seen = np.concatenate([seen, shown], axis=1)
        places = greedy.positions(seen, tokens.shape[1])
        given = {"input_ids": tokens, "attention_mask": seen, "position_ids": places, **fixed, **held}
        answers = ort.run(session, given)
        logits = answers.pop("logits")
        held.update({past.becoming(name): array for name, array in answers.items()})
        return logits

    return step
