"""What a checkpoint's own words say that it is for: the names of tasks, by the endings of transformers' classes."""

# One small table apart from the tasks: whoever fetches a model asks for the name alone, so that an edit of a task
# fetches no model again. See docs/adr/0016-tasks-are-values.md.

from __future__ import annotations

from collections.abc import Sequence

_ENDINGS = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForConditionalGeneration": "text2text-generation",
    "ForImageClassification": "image-classification",
}
"""The ending of a transformers class -> what its head is for."""
TIMM = "image-classification"
"""What a model of timm is for."""
_SENTENCES = "feature-extraction"
_BEHIND_AN_ENCODER = {"text-generation": "text2text-generation"}
"""T5WithLMHeadModel, as it was once called."""
NAMED = tuple(dict.fromkeys((*_ENDINGS.values(), TIMM, _SENTENCES)))
"""All that a checkpoint can name."""


def named(architectures: Sequence[str], *, encoder_decoder: bool, vocabulary: bool, sentences: bool) -> str | None:
    """Return the task that config.json names; None where it does not say.

    `encoder_decoder` and `vocabulary` are whether it has these; `sentences` whether the directory is
    sentence-transformers', whose models are for features unless they have a classifier (a cross-encoder).
    """
    first = architectures[0] if architectures else ""
    task = next((task for ending, task in _ENDINGS.items() if first.endswith(ending)), None)
    if sentences and task != "text-classification":
        return _SENTENCES
    if task is None and first.endswith("Model"):
        return _headless(encoder_decoder=encoder_decoder, vocabulary=vocabulary)
    return _BEHIND_AN_ENCODER.get(task, task) if task is not None and encoder_decoder else task


def _headless(*, encoder_decoder: bool, vocabulary: bool) -> str:
    """Return what a model without a head is for: its features, unless it has no vocabulary or a decoder."""
    if encoder_decoder:
        return "text2text-generation"
    return _SENTENCES if vocabulary else TIMM
