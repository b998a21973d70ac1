"""Tokenizer trouble: why transformers could not convert the files of a slow tokenizer."""

from __future__ import annotations

from pathlib import Path

from engine.text import reasons


def of_files(checkpoint: Path, error: Exception) -> list[str]:
    """Return lines of text that tell why transformers could not convert the tokenizer's files.

    transformers tries several readers on a SentencePiece model, and reports only the failure of the last reader,
    tiktoken.
    """
    models = sorted(path.name for path in checkpoint.glob("*.model"))
    if models and "tiktoken" in str(error):
        fact = f"neither transformers nor sentencepiece can read {', '.join(models)}"
        return [fact, *_sentencepiece_trouble()]
    return reasons.facts(error, without=f"{checkpoint}/")


def _sentencepiece_trouble() -> list[str]:
    """Return a line that tells why the Python package sentencepiece cannot be imported; [] where it can be imported."""
    try:
        from sentencepiece import sentencepiece_model_pb2  # noqa: F401 - only tried
    except Exception as error:  # noqa: BLE001 - protobuf raises errors of its own for code that another version generated
        return [reasons.because("sentencepiece does not work here", error)]
    return []
