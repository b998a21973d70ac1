"""Bounds: how far from the original a built model may be, by default and as a recipe says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.kit.accuracy.report import Worst
from engine.recipe.schema import Bound, Precision


@dataclass(frozen=True)
class Defaults:
    """What holds where the recipe says nothing.

    `cosine` is the least for the worst sample, `agreement` the least share of choices that stay the same, `relative`
    the largest error of any number as a share of the output's largest. An absolute default would mean nothing:
    outputs may be of size 1 or of size 1000.
    """

    cosine: float
    agreement: float
    relative: float


DEFAULTS: Mapping[Precision, Defaults] = {
    # Rounding in another order: all-MiniLM-L6-v2, fused, stays within 1e-5 of the original.
    "fp32": Defaults(cosine=0.9999, agreement=0.999, relative=1e-3),
    # 11 and 8 bits of mantissa, so 5e-4 and 4e-3 an operation; sums of these. A score of 64 before a softmax is off by
    # 0.03 in fp16, and so are single numbers behind it: T5 does not scale its scores down.
    "fp16": Defaults(cosine=0.999, agreement=0.98, relative=0.05),
    "bf16": Defaults(cosine=0.99, agreement=0.95, relative=0.2),
    # Worst of 430 texts and padded batches with all-MiniLM-L6-v2: 0.970 with 8-bit weights and a scale per channel,
    # 0.964 with 7 bits, but 0.893 with one scale per tensor and 0.776 unfused: the latter two are to fail.
    # Q/DQ for a GPU has static scales instead of dynamic ones, and is held to the same.
    "int8": Defaults(cosine=0.95, agreement=0.9, relative=0.5),
    "fp8": Defaults(cosine=0.95, agreement=0.9, relative=0.5),
    # Four bits of every weight: a small model such as all-MiniLM-L6-v2 comes to 0.96 on average, 0.88 at worst.
    "int4": Defaults(cosine=0.85, agreement=0.8, relative=0.6),
}


@dataclass(frozen=True)
class Miss:
    """A bound that was missed: of which number, how, by how much, and where."""

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
    """Return how a number misses its bound; [] where it is kept, or there is none."""
    if bound is None:
        return []
    found = []
    if bound.at_least is not None and not value >= bound.at_least:
        found.append(Miss(number, value, bound.at_least, below=True, where=where))
    if bound.at_most is not None and not value <= bound.at_most:
        found.append(Miss(number, value, bound.at_most, below=False, where=where))
    return found


def sample(measured: Worst) -> str:
    """Return which sample a worst value comes from, in words."""
    text = f' "{measured.text}"' if measured.text else ""
    return f", sample {measured.sample}{text} (mean {measured.mean:.6g})"


def allowed_changes(share: float, choices: int) -> float:
    """Return the least share of choices that must stay the same, by default: one may always change.

    Of three samples one is a third, and says nothing about a model that loses a choice in twenty.
    """
    return min(share, 1 - 1 / choices) if choices else share
