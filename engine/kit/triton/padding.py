"""Padding: texts of different lengths get one length, so that Triton joins their requests to one batch."""

from __future__ import annotations

from engine.errors import StepError
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.serving import BUCKETS, Serving

_HINT = "use package.triton.padding: none"
_MASK = "attention_mask"


def buckets(serving: Serving, signature: Signature, longest: int | None) -> list[int]:
    """Return the lengths to which a package pads texts, the smallest first; an empty list where it pads none.

    The lengths are the sizes in the profiles, up to `longest`, to which texts are cut. Raises StepError where the model
    cannot take padded texts, or where no profile names a length.
    """
    if serving.padding != BUCKETS:
        return []
    axis = signature.inputs["input_ids"].shape[1]
    sizes = serving.lengths.get(str(axis), ())
    if isinstance(axis, int):
        reason = f"the model takes texts of {axis} tokens only, to which they are padded anyway"
    elif _MASK not in signature.inputs:
        reason = f"the model has no {_MASK}, so padding would change its outputs"
    elif not sizes:
        reason = f"no profile names sizes of the axis {axis}"
    else:
        return sorted({min(size, longest or size) for size in sizes})
    raise StepError(f"package.triton.padding: buckets is not possible: {reason}", hint=_HINT)


def refuse_visible(serving: Serving, entry: Config) -> None:
    """Raise StepError where clients would see the padding: where an output of the entry has an axis of tokens."""
    visible = [output.name for output in entry.output if -1 in output.dims]
    if serving.padding == BUCKETS and visible:
        raise StepError(
            f"package.triton.padding: buckets is not possible: it would lengthen {' and '.join(visible)}", hint=_HINT
        )
