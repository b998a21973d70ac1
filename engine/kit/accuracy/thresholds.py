"""Thresholds: default bounds on the distance of a built model from the original, and bounds that are missed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.kit.accuracy.report import Worst
from engine.recipe.values import Bound, Precision


@dataclass(frozen=True)
class Defaults:
    """The default bounds of one precision, for a recipe without bounds of its own.

    `cosine` is the lower bound on the cosine of the worst sample. `agreement` is the lower bound on the share of
    choices that the built model and the original make alike. `relative` is the upper bound on the largest absolute
    error, as a share of the output's largest value or, for outputs of single numbers, of the spread of the numbers. The
    absolute error `max_abs` has no default bound, because the outputs of some models are near 1 and the outputs of
    other models near 1000. `variation` is the lower bound on the share of an output's variation that the built model
    reproduces, `rank` the lower bound on the rank correlation of single numbers, and `in_batch` the lower bound on the
    likeness of the answers to a row among others and alone, below which a package does not join rows. `perplexity` is
    the upper bound on the perplexity as a multiple of the original's.
    """

    cosine: float
    agreement: float
    relative: float
    variation: float
    rank: float
    in_batch: float
    perplexity: float


DEFAULTS: Mapping[Precision, Defaults] = {
    # In fp32 only the order of rounding differs: all-MiniLM-L6-v2, fused, stays within 1e-5 of the original. An
    # `in_batch` of 0.999999 is a difference of 0.14 % of an answer's length; TF32 has 0.05 %.
    "fp32": Defaults(
        cosine=0.9999, agreement=0.999, relative=1e-3, variation=0.999, rank=0.99, in_batch=0.999999, perplexity=1.001
    ),
    # fp16 and bf16 have 11 and 8 bits of mantissa: errors of 5e-4 and 4e-3 for each operation, which add up. In fp16 a
    # score of 64 before a softmax is off by 0.03, and so are the outputs computed from the softmax. T5, for example,
    # does not scale its scores down.
    "fp16": Defaults(
        cosine=0.999, agreement=0.98, relative=0.05, variation=0.98, rank=0.97, in_batch=0.999, perplexity=1.01
    ),
    "bf16": Defaults(
        cosine=0.99, agreement=0.95, relative=0.2, variation=0.9, rank=0.95, in_batch=0.99, perplexity=1.05
    ),
    # The worst cosine of all-MiniLM-L6-v2 on 430 texts and padded batches: 0.970 with 8-bit weights and a scale per
    # channel, 0.964 with 7 bits, but 0.893 with one scale per tensor and 0.776 unfused. The bound of 0.95 refuses the
    # last two models. Q/DQ for a GPU has static scales instead of dynamic ones, and the same bound. Dynamic scales of
    # one tensor depend on the other rows of a batch: alone and in a batch, the same texts have a cosine of 0.986.
    "int8": Defaults(cosine=0.95, agreement=0.9, relative=0.5, variation=0.8, rank=0.9, in_batch=0.98, perplexity=1.05),
    "fp8": Defaults(cosine=0.95, agreement=0.9, relative=0.5, variation=0.8, rank=0.9, in_batch=0.98, perplexity=1.05),
    # With 4-bit weights, a small model such as all-MiniLM-L6-v2 has a cosine of 0.96 on average and 0.88 at worst.
    "int4": Defaults(cosine=0.85, agreement=0.8, relative=0.6, variation=0.6, rank=0.8, in_batch=0.98, perplexity=1.25),
}
PRECISION_SHARE = 0.5
"""The least share of the multiplications that a model of a lower precision computes in this precision."""
CONSTANT = 0.1
"""The least share of an output's variation that a model reproduces that is not constant, in any precision.

Rounding hides most of the variation of outputs near zero, so the bound by precision does not suit these outputs.
"""


@dataclass(frozen=True)
class Miss:
    """A missed bound: the name of the number, its value, the bound, and the place, as text, where the value occurs."""

    number: str
    value: float
    bound: float
    below: bool
    where: str = ""

    def __str__(self) -> str:
        side = "below at_least" if self.below else "above at_most"
        by = abs(self.value - self.bound)
        return f"{self.number} {self.value:.6g} is {side} {self.bound:g} by {by:.3g}{self.where}"


def missed(number: str, value: float, bound: Bound | None, where: str = "") -> list[Miss]:
    """Return the bounds that a number misses; [] where the number keeps its bound or has no bound."""
    if bound is None:
        return []
    misses = []
    if bound.at_least is not None and not value >= bound.at_least:
        misses.append(Miss(number, value, bound.at_least, below=True, where=where))
    if bound.at_most is not None and not value <= bound.at_most:
        misses.append(Miss(number, value, bound.at_most, below=False, where=where))
    return misses


def in_batch(precision: Precision, bound: Bound | None) -> float:
    """Return the least likeness of rows that a package joins: the recipe's bound, or the precision's default."""
    return DEFAULTS[precision].in_batch if bound is None or bound.at_least is None else bound.at_least


def sample(measured: Worst) -> str:
    """Return the name and the text of the sample with the worst value, as the end of a sentence in an error."""
    text = f' "{measured.text}"' if measured.text else ""
    output = f", output {measured.output}" if measured.output else ""
    return f", sample {measured.sample}{text}{output} (mean {measured.mean:.6g})"


def allowed_changes(share: float, choices: int) -> float:
    """Return the default lower bound on the share of equal choices: `share`, or less, so that one choice may change.

    One changed choice never misses the default bound. With three choices, for example, the bound is at most 2/3.
    """
    return min(share, 1 - 1 / choices) if choices else share
