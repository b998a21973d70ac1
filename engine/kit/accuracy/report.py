"""Accuracy reports: the distance of a built model's outputs from the original's, and how often their choices agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.reporting import Number, TypedReport, significant
from engine.runtimes import runner

_DIGITS = 4
"""The number of significant digits with which a number is shown to people; a cosine of 0.9999 needs four digits."""


@dataclass(frozen=True)
class Worst:
    """A measured number over all cases: its mean, its worst value, and the case of the worst value."""

    worst: float
    mean: float
    sample: str
    text: str
    """The beginning of the text of the worst case; "" for a case without a text."""
    output: str = ""
    """The name of the output with the worst value; "" for a model with one output."""

    def line(self, number: Number) -> str:
        """Return a text with the number's mean, its worst value and the name of the case with the worst value."""
        return f"{number.label} mean {number.text(self.mean)}, worst {number.text(self.worst)} ({self.sample})"


@dataclass(frozen=True)
class Agreement:
    """The share of choices, such as classes, that the built model and the original make alike; ties count as different.

    A near tie is a choice that differs although the original finds both options nearly equal.
    """

    share: float
    differ: tuple[str, ...]
    """The names of the cases in which the built model and the original choose differently."""
    choices: int
    one_class: bool = False
    """Whether the original makes the same choice everywhere, so that equal choices say little."""
    near_ties: int = 0
    """The number of different choices that are near ties."""
    gap: str = ""
    """What counts as a near tie, in words; empty without near ties."""

    @property
    def with_near_ties(self) -> float:
        """The share of choices that are equal or a near tie."""
        return self.share + self.near_ties / self.choices if self.near_ties else self.share

    @property
    def shown(self) -> float:
        """The share as people see it in four digits, of which 1 means that no choice differs."""
        return min(self.share, 1 - 10**-_DIGITS) if self.share < 1 else 1

    def line(self, number: Number) -> str:
        """Return a text with the label and the share of equal choices; near ties have a share of their own."""
        aside = ", all of them the same class, which says little" if self.one_class else ""
        ties = f"; {number.text(self.with_near_ties)} with near ties ({self.gap})" if self.near_ties else ""
        return f"{number.label} {number.text(self.shown)}{aside}{ties}"


@dataclass(frozen=True)
class PrecisionShares:
    """The share of a model's multiplications in each precision, for inputs of one shape."""

    shares: Mapping[str, float]
    """The name of each precision -> its share, from 0 to 1; empty without multiplications.

    A precision is a number format such as "int8", or has other weights: "fp32 with int4 weights".
    """
    shape: Mapping[str, int]
    """The extent of each dynamic axis of the inputs."""
    operators: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The kind of an operator, such as "Conv" -> the number of operators in each precision.

    Empty where the runtime does not tell them apart.
    """

    @classmethod
    def of(cls, counts: Mapping[str, int], shape: Mapping[str, int]) -> PrecisionShares:
        """Return the shares of counted multiplications."""
        total = max(1, sum(counts.values()))
        shares = {name: round(count / total, _DIGITS) for name, count in counts.items()}
        operators = {kind: dict(each) for kind, each in sorted(runner.operators(counts).items())}
        return cls(shares, shape, operators)

    def reached(self, precision: str, *, weights_only: bool) -> float:
        """Return the share that is computed in a precision or, with `weights_only`, whose weights are in it."""
        return sum(share for name, share in self.shares.items() if _is_in(name, precision, weights_only=weights_only))

    def headline(self, precision: str, *, weights_only: bool) -> str | None:
        """Return how many operators of each kind reached a precision, as "int8: 0 of 53 Conv, 1 of 1 MatMul".

        Returns None where the operators are not known.
        """
        reached = [
            f"{sum(n for name, n in each.items() if _is_in(name, precision, weights_only=weights_only))}"
            f" of {sum(each.values())} {kind}"
            for kind, each in sorted(self.operators.items())
        ]
        return f"{precision}{' weights' if weights_only else ''}: {', '.join(reached)}" if reached else None

    def line(self, number: Number) -> str:
        """Return a text with the share of each precision and the shape of the inputs."""
        shape = " x ".join(f"{axis} {extent}" for axis, extent in self.shape.items())
        return f"{number.label} {self.in_words(digits=0)}{f' ({shape})' if shape else ''}"

    def in_words(self, *, digits: int = 1) -> str:
        """Return the share of each precision as text, for example "94.2% in fp32, 5.8% in int8"."""
        largest_first = sorted(self.shares.items(), key=lambda each: -each[1])  # JSON keeps no order
        return ", ".join(f"{share:.{digits}%} in {name}" for name, share in largest_first) or "none"


def _is_in(name: str, precision: str, *, weights_only: bool) -> bool:
    """Whether the name of a precision, such as "int8 with int4 weights", is a precision, or has its weights in it."""
    computed, _, weights = name.partition(" with ")
    return weights == f"{precision} weights" if weights_only else computed == precision


@dataclass(frozen=True)
class Least:
    """The smallest value of a number that each output has once, and the name of the output with this value."""

    worst: float
    output: str

    def line(self, number: Number) -> str:
        """Return a text with the number's label, its smallest value and the output's name."""
        return f"{number.label} {number.text(self.worst)} ({self.output})"


@dataclass(frozen=True)
class MetricReport:
    """A metric, such as accuracy, of the built model and of the original, over all samples with a label."""

    name: str
    value: float
    original: float
    samples: int

    def line(self, number: Number) -> str:
        """Return a text with the name of the metric and the built model's value."""
        return f"{self.name} {number.text(self.value)}"


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """The perplexity of the built model and of the original on one text, and the ratio of the two.

    A number is None where a model gives logits that are not finite.
    """

    ratio: float | None
    value: float | None
    original: float | None
    tokens: int
    """The number of tokens that were predicted."""
    length: int
    """The number of tokens of a window."""
    stride: int
    """The number of tokens from the beginning of a window to the beginning of the next."""

    def line(self, number: Number) -> str:
        """Return a text with both perplexities, their ratio, and the windows."""
        values = (("", self.value), ("the original ", self.original), ("ratio ", self.ratio))
        shown = ", ".join(f"{name}{'not finite' if value is None else number.text(value)}" for name, value in values)
        return f"{number.label} {shown} ({self.tokens} tokens, windows of {self.length}, stride {self.stride})"


@dataclass(frozen=True, kw_only=True)
class AccuracyReport(TypedReport):
    """The numbers that the steps `validate` and `validate-onnx` measure: how far the built model is from the original.

    Where an output of the built model is not finite or has another size, the report has no distance from the original.
    """

    cases: int
    kinds: Mapping[str, int]
    random: bool
    """Whether the cases are random tensors, because there are no samples."""
    outside: tuple[str, ...] = ()
    """The names of the cases that were left out because the built model does not take their shapes."""
    nonfinite: tuple[str, ...] = ()
    """The names of the cases in which the built model gives NaN or infinity and the original a finite number."""
    unanswered: tuple[str, ...] = ()
    """The names of the cases in which the original gives a row of NaN or infinity, so that nothing can be compared."""
    reshaped: tuple[str, ...] = ()
    """The names of the cases in which the built model gives an output another size, with both sizes."""
    undecided: tuple[str, ...] = ()
    """The names of the cases to which the built model gives two different answers."""
    notes: tuple[str, ...] = ()
    """What the numbers below cannot show: outputs near zero, constant outputs, rows that were left out, few samples."""
    cosine: Worst | None = field(default=None, metadata=significant("cosine", digits=_DIGITS))
    """The cosine of an output's vectors in both models; None where no output is a vector with a direction."""
    max_abs: Worst | None = field(default=None, metadata=significant("max_abs", digits=_DIGITS))
    relative: Worst | None = None
    """The largest absolute difference, as a share of the output's largest value or, for single numbers, the spread."""
    variation: Least | None = field(default=None, metadata=significant("variation", digits=_DIGITS))
    """The share of the variation of an output that the built model reproduces; None where no output varies."""
    variation_near_zero: Least | None = None
    """The same share for outputs near zero."""
    rank: Least | None = field(default=None, metadata=significant("rank correlation", digits=_DIGITS))
    """The rank correlation of an output with one number per sample; None where there is no such output."""
    in_batch: Worst | None = field(default=None, metadata=significant("in a batch:", digits=_DIGITS))
    """The likeness of the built model's answer to a row among others to its answer to the row alone, where the others
    have the shape of the row, and where texts are padded to the longest; None where no rows stand together.
    """
    in_equal_batch: Worst | None = None
    """The same only for rows among others of their shape."""
    joins_no_rows: str | None = None
    """Why rows cannot stand together although the first axis of the inputs is free; None where they can."""
    agreement: Agreement | None = field(default=None, metadata=significant("agreement", digits=_DIGITS))
    """How often the choices of both models agree; None for outputs that make no choice."""
    metric: MetricReport | None = field(default=None, metadata=significant("metric", digits=_DIGITS))
    """The accuracy on the samples with a label; None where no sample has a label, or the outputs are no classes."""
    perplexity: Perplexity | None = field(default=None, metadata=significant("perplexity", digits=_DIGITS))
    """The perplexity on a text of the user's; None where the recipe names no text."""
    work: PrecisionShares | None = field(default=None, metadata=significant("multiplications:", digits=_DIGITS))
    """The share of the multiplications in each precision; None where the runtime cannot tell, as on a GPU."""
    bytes: int | None = None
    """The size in bytes of the built model's files; None in the report of `validate-onnx`."""
    emulated: str | None = None
    """The names of the 16-bit precisions that the CPU emulated, as one text; None where the CPU emulated none."""

    @property
    def warnings(self) -> Sequence[str]:
        """The notes."""
        return self.notes
