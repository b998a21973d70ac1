"""Refusals: the errors about a built model that is not what the recipe asks for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.errors import JudgementError, PrecisionError
from engine.kit.accuracy import thresholds
from engine.kit.accuracy.report import AccuracyReport, PrecisionShares
from engine.kit.accuracy.thresholds import DEFAULTS, Miss
from engine.recipe.values import Precision
from engine.text import lists

_LISTED = 20
"""The largest number of case names in an error."""
NO_METRIC = "no sample has a label, or the outputs are no classes"
"""Why a metric could not be measured."""


def too_far(misses: Sequence[Miss], report: AccuracyReport, precision: Precision, *, saturates: bool) -> JudgementError:
    """Return the error for missed bounds. `saturates` tells whether sums of 8-bit products can saturate on this CPU."""
    facts = [str(miss) for miss in misses[1:]]
    if report.work is not None and precision != "fp32":
        facts.append(f"multiplications: {report.work.in_words()}")
    if report.random:
        facts.append("the inputs are random tensors; give validate.samples to judge it on real ones")
    if saturates:
        facts.append(
            "this CPU has no VNNI, so sums of products of 8-bit numbers can saturate; with `target: {isa: avx2}` "
            "weights have 7 bits"
        )
    return JudgementError(
        f"The built model is too far from the original: {misses[0]}",
        facts,
        f"{_way_out(precision)}; or, if this is close enough for you, set the bound under `validate`",
    )


def not_finite(names: Sequence[str], precision: Precision) -> JudgementError:
    """Return the error for cases in which only the built model gives numbers that are not finite."""
    return JudgementError(
        "The built model gives numbers that are not finite (NaN or infinity) where the original gives finite ones",
        [f"in {len(names)} cases: {names_of(names)}"],
        "do the samples suit the model? inputs far outside what it was trained on overflow even in fp32"
        if precision == "fp32"
        else "a precision with too small a range for this model? try fp32",
    )


def other_size(cases: Sequence[str], precision: Precision) -> JudgementError:
    """Return the error for cases in which an output of the built model has another size."""
    few = "" if precision == "fp32" else "choose a higher precision, or "
    return JudgementError(
        "The built model gives an output another size than the original does",
        [f"in {len(cases)} cases: {names_of(cases)}"],
        f"small errors change a size that depends on values, such as the number of boxes: {few}leave the selection "
        "(NonMaxSuppression, NonZero, Compress) out of the model",
    )


def unanswered(names: Sequence[str]) -> JudgementError:
    """Return the error for cases in which the original itself gives no finite number."""
    return JudgementError(
        "The original gives a row of NaN or infinity, so there is nothing to compare the built model with",
        [f"in {len(names)} cases: {names_of(names)}"],
        "do the samples suit the model? a model that answers NaN cannot be validated",
    )


def undecided(names: Sequence[str]) -> JudgementError:
    """Return the error for cases in which the built model gives two answers to the same inputs."""
    return JudgementError(
        "The built model gives two different answers to the same inputs",
        [f"in {len(names)} cases: {names_of(names)}"],
        "does the model draw random numbers? export it for inference, with noise as an input",
    )


def joined(asks: Sequence[str], report: AccuracyReport, least: float) -> JudgementError:
    """Return the error for a recipe that asks for batches of a model whose answer to a row depends on other rows."""
    facts = [f"the recipe asks for: {', '.join(asks)} (package)"]
    if report.joins_no_rows is not None:
        facts.append(report.joins_no_rows)
    for rows, worst in (("rows of one length", report.in_equal_batch), ("padded texts", report.in_batch)):
        if worst is not None:
            facts.append(f"{rows}: likeness {worst.worst:.6g} alone and in a batch{thresholds.sample(worst)}")
    return JudgementError(
        "The answer to a row depends on the rows beside it, and the recipe asks for batches",
        [*facts, f"the bound (validate.in_batch): {least:g}"],
        "leave these fields out: the model is then packaged without batching",
    )


def unmeasured(number: str, why: str) -> JudgementError:
    """Return the error for a bound on a number that could not be measured, and why it could not."""
    return JudgementError(
        f"The recipe bounds {number}, which could not be measured", [why], f"take validate.{number} out, or add samples"
    )


def too_little(
    miss: Miss, reached: float, work: PrecisionShares, precision: Precision, *, weights_only: bool
) -> PrecisionError:
    """Return the error for a model of which only the share `reached` has the precision of the recipe."""
    does = "has weights in" if weights_only else "computes in"
    operators = work.headline(precision, weights_only=weights_only)
    enough = math.floor(reached * 100) / 100
    bound = f"; or, if this share is enough for you: `validate: {{precision_share: {{at_least: {enough:g}}}}}`"
    return PrecisionError(
        f"Too little of the model {does} {precision}: {miss}",
        [f"multiplications: {work.in_words()}", *([] if operators is None else [operators])],
        f"build it in {_usual(work)}{bound if enough else ''}",
    )


def bf16_for_fp32(work: PrecisionShares) -> JudgementError:
    """Return the error for a CPU that computes a model of a recipe in fp32 in bf16."""
    return JudgementError(
        "This CPU computes the model in bf16, and the recipe asks for fp32",
        [f"multiplications: {work.in_words()}"],
        "use precision: bf16, or runtime: onnxruntime",
    )


def names_of(names: Sequence[str]) -> str:
    """Return the names of the first cases, and how many more there are."""
    return lists.first_of(names, _LISTED)


def _usual(work: PrecisionShares) -> str:
    """Return the precision of a recipe in which most of the multiplications are computed.

    fp32 stands for a number format that is no precision of a recipe, such as that of a model in fp64: a recipe in fp32
    leaves the model's own number formats as they are.
    """
    most = max(work.shares, key=lambda name: work.shares[name], default="fp32").partition(" with ")[0]
    return most if most in DEFAULTS else "fp32"


def _way_out(precision: Precision) -> str:
    if precision == "fp32":
        return (
            "no precision is higher than fp32, and rounding in fp32 does not explain it: do the samples suit the model?"
        )
    return "choose a higher precision (`recipe bisect` finds the layers that need it)"
