"""Tags: a label with a score for each token, and the entities that tokens form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.kit.checkpoints import json_files, labels
from engine.kit.inputs.tokenizer import special_token
from engine.kit.triton import served
from engine.kit.triton.answers import scores
from engine.runtimes.triton_tensors import TEXT
from engine.tasks import answer
from engine.tasks.answer import Answer, AnswerTensor

if TYPE_CHECKING:
    from engine.kit.triton.config import Signature
    from engine.kit.triton.text import ServedTokenizer

_STRATEGY = "aggregation_strategy"
_ENTITIES = (
    AnswerTensor("entities", "TYPE_STRING", (-1,)),
    AnswerTensor("entity_scores", "TYPE_FP32", (-1,)),
    AnswerTensor("entity_texts", "TYPE_STRING", (-1,)),
    AnswerTensor("entity_offsets", "TYPE_INT64", (-1, 2)),
)


def make(signature: Signature, checkpoint: Path, text: ServedTokenizer) -> Answer:
    """Return the postprocessing that turns logits [rows, tokens, classes] into a label with a score for each token.

    With the option `aggregation_strategy` the answer has the entities, too. Raises Unfit for a model without logits of
    three axes.
    """
    logits, names = answer.output(signature, "logits", axes=3)
    score = scores.of_onnx(checkpoint, logits.name, axes=3) or "softmax"
    settings: dict[str, Any] = {"labels": labels.names(checkpoint, answer.extent(logits)), "scores": score}
    takes: tuple[str, ...] = ("logits", "input_ids", "attention_mask")
    gives: tuple[AnswerTensor, ...] = (
        AnswerTensor("labels", "TYPE_STRING", (-1,)),
        AnswerTensor("scores", "TYPE_FP32", (-1,)),
        AnswerTensor("tokens", "TYPE_STRING", (-1,)),
    )
    outputs: tuple[str, ...] = ("logits", "labels", "scores", "tokens", "offsets")
    backend = text.tokenizer.backend
    strategy = text.options.get(_STRATEGY)
    if strategy is not None:
        settings |= {_STRATEGY: strategy, **_words(backend, checkpoint)}
        takes = (*takes, "offsets", TEXT)
        gives = (*gives, *_ENTITIES)
        outputs = (*outputs, *(each.name for each in _ENTITIES))
    tokens = [backend.id_to_token(number) or "" for number in range(answer.vocabulary(backend))]
    return Answer(
        served.TAG, takes, gives, outputs, settings, names, {"vocabulary.json": answer.as_json(tokens)}
    )  # fmt: skip


def _words(backend: Any, checkpoint: Path) -> dict[str, Any]:
    """Return what tells the first token of a word from the others."""
    token = special_token(json_files.settings(checkpoint / "tokenizer_config.json"), "unk_token")
    unknown = token if isinstance(token, str) else getattr(backend.model, "unk_token", None)
    return {
        "prefixed": bool(getattr(backend.model, "continuing_subword_prefix", None)),
        "unknown": None if unknown is None else backend.token_to_id(unknown),
    }
