"""Aliases: what transformers' pipelines, model cards and other tools call a task."""

from __future__ import annotations

ALIASES = {
    "sentiment-analysis": "text-classification",
    "zero-shot-classification": "text-classification",
    "classification": "text-classification",
    "sequence-classification": "text-classification",
    "text-ranking": "text-classification",
    "ner": "token-classification",
    "named-entity-recognition": "token-classification",
    "qa": "question-answering",
    "squad": "question-answering",
    "mlm": "fill-mask",
    "masked-lm": "fill-mask",
    "masked-language-modeling": "fill-mask",
    "sentence-similarity": "feature-extraction",
    "sentence-embeddings": "feature-extraction",
    "embedding": "feature-extraction",
    "embeddings": "feature-extraction",
    "default": "feature-extraction",
    "causal-lm": "text-generation",
    "causallm": "text-generation",
    "chat": "text-generation",
    "conversational": "text-generation",
    "seq2seq": "text2text-generation",
    "seq2seq-lm": "text2text-generation",
    "summarization": "text2text-generation",
    "translation": "text2text-generation",
}
