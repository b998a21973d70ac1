"""Calibration: the inputs that may be looked at before a model is validated on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs import cases, index_ranges, random_inputs, samples, token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.inputs.cases import Case
from engine.kit.inputs.token_rows import RowLimits
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference import questions
from engine.kit.reference.originals import Original

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Profile

_SEED = 1921
"""Another than that of the random inputs that models are validated on."""
_SOME = 32
_LISTED = 5


def from_file(path: Path, checkpoint: Path, wanted: Mapping[str, Input], *, limit: int | None) -> list[Case]:
    """Return the first samples of a file, and batches of them with masks of every kind. Raises StepError."""
    asked = samples.read(path, checkpoint, wanted)[:limit]
    return asked if path.suffix == ".npz" else padded(asked, checkpoint, wanted)


def of_our_own(checkpoint: Path, wanted: Mapping[str, Input]) -> list[Case]:
    """Return texts of our own, and batches of them as above; nothing for a model that takes no text."""
    if not token_rows.are_tokens(wanted) or tokenizers.load(checkpoint, longest=None) is None:
        return []
    return padded(samples.tokenize(samples.built_in(), checkpoint, wanted), checkpoint, wanted)


def padded(asked: list[Case], checkpoint: Path, wanted: Mapping[str, Input]) -> list[Case]:
    """Return texts and batches of them with masks of every kind; only the texts where there is no tokenizer."""
    longest = checkpoints.max_sequence(checkpoint)
    tokenizer = tokenizers.load(checkpoint, longest=longest)
    if tokenizer is None:
        return asked
    return [*asked, *questions.masked(asked, wanted, pad=tokenizer.pad, limits=RowLimits.of(wanted, longest))]


def from_reference(directory: Path) -> list[Case]:
    """Return the cases that the original answered."""
    return cases.load(directory)


def drawn(graph: onnx.ModelProto, profiles: Sequence[Profile], *, longest: int | None = None) -> list[Case]:
    """Return seeded random inputs, others than those of validation; of tokens at most `longest`.

    Raises StepError where none can be drawn.
    """
    wanted, ranges = onnx_files.inputs(graph), index_ranges.of(graph)
    tokens = token_rows.are_tokens(wanted)
    vocabulary = random_inputs.vocabulary(wanted, ranges) if tokens else None
    return questions.drawn(Original("graph", wanted, lambda _: {}, ranges, vocabulary, longest), profiles, seed=_SEED)


def some(asked: Sequence[Case]) -> list[Case]:
    """Return at most 32 of the cases: some with masks of every kind, and others from the first to the last."""
    masked = [case for case in asked if case.kind.endswith(("padded", "holed"))]
    others = [case for case in asked if case not in masked]
    few = _spread(masked, _SOME // 4)
    return [*_spread(others, _SOME - len(few)), *few]


def refuse_overlap(
    path: Path, checkpoint: Path, wanted: Mapping[str, Input], *, limit: int | None, reference: Path
) -> None:
    """Raise StepError where a sample for calibration is one that the model is validated on."""
    seen = {_identity(case): case.name for case in cases.load(reference)}
    asked = samples.read(path, checkpoint, wanted)[:limit]
    both = [f"{case.name}: {case.text[:60]!r}" for case in asked if _identity(case) in seen]
    if both:
        raise StepError(
            f"{len(both)} of the samples in calibrate.samples are also in validate.samples",
            both[:_LISTED],
            "a model that is validated on what it was calibrated on looks better than it is: keep them apart",
        )


def _identity(case: Case) -> tuple[object, ...]:
    """Return what two equal samples share: the text, since a tokenizer may know no word of either; or the tensors."""
    if case.kind == "sample":
        return ("text", case.text)
    return tuple((name, array.shape, array.tobytes()) for name, array in sorted(case.inputs.items()))


def _spread(asked: Sequence[Case], count: int) -> list[Case]:
    if len(asked) <= count:
        return list(asked)
    return [asked[index * len(asked) // count] for index in range(count)]
