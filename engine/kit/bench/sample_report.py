"""Sample report: throughput and padding of batches of samples, and what follows from the samples' lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.kit.bench.stats import Interval

SampleOrder = Literal["arrival", "sorted"]
"""The order in which samples are cut into batches: that of their file, or from the shortest text to the longest."""
ORDERS: tuple[SampleOrder, ...] = ("arrival", "sorted")


@dataclass(frozen=True, kw_only=True)
class SampleFigures:
    """What a model computes per second when it is called with all batches of the samples, one after another."""

    order: SampleOrder
    texts: int
    tokens: int
    padding: float
    """The share of padded positions among all positions that the model computes, from 0 to 1."""
    texts_per_s: float
    tokens_per_s: float
    """Tokens of the texts per second; padding does not count."""
    gain: float | None = None
    """How many times more texts per second than in the order of arrival; None for the order of arrival itself."""
    gain_interval: Interval | None = None
    """The 95 % confidence interval of `gain`."""


@dataclass(frozen=True, kw_only=True)
class Batching:
    """The measured throughput of the recipe's own model with batches of one size, in one order."""

    batch: int
    order: SampleOrder
    padding: float
    texts_per_s: float
    gain: float | None = None
    """How many times more texts per second than one text at a time; None where that was not measured."""
    gain_interval: Interval | None = None
    """The 95 % confidence interval of `gain`."""

    @property
    def pays(self) -> bool:
        """Whether the batching is faster than one text at a time, by more than the noise of the measurement."""
        return self.gain_interval is not None and self.gain_interval[0] > 1


@dataclass(frozen=True, kw_only=True)
class SampleLengths:
    """The lengths of the samples that a shape stands for, other batch sizes, and the buckets that fit the lengths."""

    shape: Mapping[str, int | str]
    texts: int
    """The number of measured texts."""
    of_texts: int
    """The number of texts in the file of samples; texts beyond a limit are left out evenly."""
    tokens: int
    longest: int
    """The number of tokens of the longest text."""
    limit: int | None
    """The number of tokens to which texts are cut; None where they are not cut."""
    batchings: tuple[Batching, ...] = ()
    buckets: tuple[int, ...] = ()
    """The lengths that fit the samples, if each text is padded to the smallest bucket that holds the text."""
    padding_in_buckets: float = 0.0
    padding_in_one_bucket: float = 0.0
    """The padding if each text is padded to the last bucket."""

    def fastest(self, order: SampleOrder | None = None) -> Batching | None:
        """Return the batching with the most texts per second, of one order or of both; None where none was measured."""
        candidates = [each for each in self.batchings if order in (None, each.order)]
        return max(candidates, key=lambda each: each.texts_per_s, default=None)
