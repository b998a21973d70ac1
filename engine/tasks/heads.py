"""Heads: finds the task of a checkpoint by the ending of the class name in `architectures` of config.json."""

# This table is apart from the tasks: `fetch` needs the name of the task alone, so an edit of a task
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
    "TextModelWithProjection": "feature-extraction",
    "ForImageClassification": "image-classification",
    "VisionModelWithProjection": "image-feature-extraction",
    "VisionModel": "image-feature-extraction",
    "CLIPModel": "zero-shot-image-classification",
    "MetaClip2Model": "zero-shot-image-classification",
    "SiglipModel": "zero-shot-image-classification",
    "Siglip2Model": "zero-shot-image-classification",
    "ForObjectDetection": "object-detection",
    "ForSemanticSegmentation": "image-segmentation",
}
"""The ending of a transformers class's name -> the name of the task that models of the class do."""
TIMM = "image-classification"
"""The name of the task that every model of timm has."""
_SENTENCES = "feature-extraction"
"""The name of the task of every sentence-transformers model that is no cross-encoder."""
_IMAGES = "image-feature-extraction"
"""The name of the task of every model of transformers without a head and a vocabulary."""
_BEHIND_AN_ENCODER = {"text-generation": "text2text-generation"}
"""A task from `_ENDINGS` -> the task that replaces it for an encoder-decoder model, such as T5WithLMHeadModel."""
NAMED = tuple(dict.fromkeys((*_ENDINGS.values(), TIMM, _SENTENCES, _IMAGES)))
"""The names of all tasks that a checkpoint's config.json can name."""


def named(architectures: Sequence[str], *, encoder_decoder: bool, vocabulary: bool, sentences: bool) -> str | None:
    """Return the name of the task for the class in `architectures` of config.json; None where the class names no task.

    `encoder_decoder` tells whether the model has an encoder and a decoder. `vocabulary` tells whether config.json is
    that of a model of texts. `sentences` tells whether the checkpoint is a sentence-transformers model, whose task is
    feature extraction unless the model is a cross-encoder.
    """
    first = architectures[0] if architectures else ""
    task = next((task for ending, task in _ENDINGS.items() if first.endswith(ending)), None)
    if sentences and task != "text-classification":
        return _SENTENCES
    if task is None and first.endswith("Model"):
        return "text2text-generation" if encoder_decoder else _SENTENCES if vocabulary else _IMAGES
    return _BEHIND_AN_ENCODER.get(task, task) if task is not None and encoder_decoder else task
