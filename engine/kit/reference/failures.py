"""Failures: the error for an original model that cannot run on a case, with the likely cause."""

from __future__ import annotations

from engine.errors import StepError
from engine.feasibility import proposals
from engine.kit.inputs.cases import Case
from engine.kit.reference import size_search
from engine.kit.reference.originals import Original
from engine.text import reasons


def of_original(original: Original, case: Case, error: Exception) -> StepError:
    """Return the error for an original model that cannot run on a case."""
    beyond = _beyond(original, case)
    if beyond is not None:
        return beyond
    shapes = [f"{name}: {tensor.dtype} {list(tensor.shape)}" for name, tensor in case.inputs.items()]
    hint = _of_random(original, case) if case.kind == "random" else "is the sample one that the model is made for?"
    return StepError(
        f"the original model ({original.name}) fails on {case.name}", [*reasons.facts(error), *shapes], hint
    )


def _of_random(original: Original, case: Case) -> str:
    """Return the hint for random inputs on which a model fails: a profile with which the model runs, if one exists."""
    if original.vocabulary is None:
        print("looking for sizes with which the model runs")
        ranges = size_search.near(original, case)
        if ranges:
            return f"the model runs with other sizes: write {proposals.as_yaml(ranges)}"
    return (
        "random tensors do not suit every model: give samples (validate: {samples: FILE.npz}), an array for each input"
    )


def _beyond(original: Original, case: Case) -> StepError | None:
    """Return the error for a token number beyond the model's vocabulary; None where the vocabulary has all tokens."""
    ids = case.inputs.get("input_ids")
    if original.vocabulary is None or ids is None or not ids.size or int(ids.max()) < original.vocabulary.tokens:
        return None
    vocabulary = f"the model has {original.vocabulary.tokens} tokens: 0 to {original.vocabulary.tokens - 1}"
    if case.kind == "tensors":
        return StepError(f"{case.name} of the samples holds the token {int(ids.max())}", [vocabulary])
    return StepError(
        "the tokenizer does not belong to the model: it makes tokens that the model does not have",
        [f"it makes the token {int(ids.max())} of {case.name}", vocabulary],
        "take the tokenizer that the model was trained with, or enlarge its embeddings (resize_token_embeddings)",
    )
