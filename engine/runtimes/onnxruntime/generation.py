"""Driver of text generation: runs graphs with past (a key-value cache) in ONNX Runtime, one call per new token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.generation import greedy
from engine.kit.onnx import graphs
from engine.runtimes.onnxruntime import multiplications
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime.providers import ON_CPU
from engine.runtimes.runner import Runner

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

    Tensors = Mapping[str, np.ndarray]
    Step = Callable[[np.ndarray, np.ndarray], np.ndarray]

_ANSWERED = 12
"""The number of tokens that a decoder behind an encoder gets where multiplications are counted."""
_FIRST = 0
"""The first token that a decoder gets where only time is measured, as the latency is the same for every token."""


def runner(
    artifact: Path, *, name: str, threads: int, new_tokens: int = 0, level: str | None = None, prepack: bool = True
) -> Runner:
    """Return the runner of an artifact that generates text.

    `run` takes `input_ids` and `attention_mask` [batch, sequence], for a model with encoder and decoder also
    `decoder_input_ids` [batch, target], and returns `logits` as one pass of the original model would. A prepared call
    generates exactly `new_tokens` for each row of `input_ids`, because end tokens do not end the call. `level` and
    `prepack` are those of `session.session`. Raises StepError where ONNX Runtime refuses a graph.
    """
    folders = [artifact / folder for folder in graphs.folders(artifact)]

    def count(inputs: Tensors) -> dict[str, int]:
        answered = {"decoder_input_ids": inputs["input_ids"][:, :_ANSWERED], **inputs}
        return multiplications.of_run(folders, lambda profiled: _logits(profiled, answered), provider=ON_CPU)

    sessions = [ort.session(folder, threads=threads, level=level, prepack=prepack) for folder in folders]
    return Runner(
        name,
        lambda inputs: {"logits": _logits(sessions, inputs)},
        lambda inputs: lambda: generate(sessions, inputs, new_tokens, start=_FIRST),
        work=count,
    )


def generate(
    sessions: list[onnxruntime.InferenceSession], inputs: Tensors, new_tokens: int, *, start: int
) -> np.ndarray:
    """Return exactly `new_tokens` new tokens for each row, int64 [batch, new_tokens], each the likeliest token.

    `start` is the first token of a decoder that follows an encoder.
    """
    import numpy as np

    step, ids, mask = _start(sessions, inputs)
    if len(sessions) > 1:
        ids = np.full((len(ids), 1), start, dtype=np.int64)
        mask = np.ones_like(ids)
    shown = iter((mask,))
    loop = greedy.Greedy(ids.tolist(), greedy.Rules(), max_new_tokens=new_tokens)

    def last(tokens: np.ndarray) -> np.ndarray:
        return step(tokens, next(shown, np.ones_like(tokens)))[:, -1]

    return np.stack(list(greedy.generate(last, loop, ids)), axis=1)


def _logits(sessions: list[onnxruntime.InferenceSession], inputs: Tensors) -> np.ndarray:
    """Return the logits of every position, [batch, tokens, vocabulary].

    Three calls compute the logits: the first call takes the first half of the tokens and an empty past, the second call
    a single token as in generation, the third call all remaining tokens. Later calls use the past of earlier calls, so
    a comparison of logits also tests the past.
    """
    import numpy as np

    step, ids, mask = _start(sessions, inputs)
    if len(sessions) > 1:
        ids = inputs["decoder_input_ids"]
        mask = np.ones_like(ids)
    half = (ids.shape[1] + 1) // 2
    ends = dict.fromkeys((half, min(half + 1, ids.shape[1]), ids.shape[1]))
    return np.concatenate([step(ids[:, a:b], mask[:, a:b]) for a, b in zip((0, *ends), ends, strict=False)], axis=1)


def _start(sessions: list[onnxruntime.InferenceSession], inputs: Tensors) -> tuple[Step, np.ndarray, np.ndarray]:
    """Return a function that runs the model on new tokens, the token ids of the prompt, and the attention mask."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    if len(sessions) == 1:
        return _continuing(sessions[0], len(ids), {}), ids, mask
    encoder, decoder = sessions
    encoded = {
        graphs.becoming_past(name): array
        for name, array in ort.run(encoder, {"input_ids": ids, "attention_mask": mask}).items()
    }
    return _continuing(decoder, len(ids), {"encoder_attention_mask": mask, **encoded}), ids, mask


def _continuing(session: onnxruntime.InferenceSession, rows: int, fixed: Tensors) -> Step:
    """Return a function that takes new tokens and their mask, [rows, new], and returns logits [rows, new, vocabulary].

    The returned function keeps the past (KV cache) of each call for the next call. `fixed` are inputs with the same
    values in every call, for example the encoder's attention mask.
    """
    import numpy as np

    past_values = {
        value.name: np.zeros((rows, value.shape[1], 0, value.shape[3]), dtype=np.float32)
        for value in session.get_inputs()
        if value.name.startswith(f"{graphs.PAST}.") and value.name not in fixed
    }
    mask = np.zeros((rows, 0), dtype=np.int64)

    def step(tokens: np.ndarray, shown: np.ndarray) -> np.ndarray:
        nonlocal mask
        mask = np.concatenate([mask, shown], axis=1)
        positions = greedy.positions(mask, tokens.shape[1])
        feeds = {"input_ids": tokens, "attention_mask": mask, "position_ids": positions, **fixed, **past_values}
        answers = ort.run(session, feeds)
        logits = answers.pop("logits")
        past_values.update({graphs.becoming_past(name): array for name, array in answers.items()})
        return logits

    return step
