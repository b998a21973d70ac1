"""Standings: the contenders of one precision, each with its times and its accuracy, as a table, as CSV and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from timing import table

from frontier.accuracy import VALID, Accuracy
from frontier.contenders import Contender
from frontier.measuring import Timings

EXACT = 0.9999
"""The worst cosine of a model that computes in fp32. Operators of bf16 miss it."""
CSV = (
    "precision", "contender", "shape", "median_ms", "of_ours", "low", "high", "cosine_mean", "cosine_worst", "in_class",
)  # fmt: skip


@dataclass(frozen=True)
class Standings:
    """One precision: `ours` is the name of the package with which the others are compared, fixed before the times."""

    precision: str
    ours: str
    contenders: Sequence[Contender]
    accuracies: Mapping[str, Accuracy]
    timings: Mapping[str, Timings]

    def in_class(self, name: str) -> bool:
        """Whether the accuracy of a contender is known, and enough for its precision."""
        accuracy = self.accuracies.get(name)
        if accuracy is None:
            return False
        return accuracy.valid if self.precision != "fp32" else accuracy.least >= EXACT

    def markdown(self) -> str:
        """Return the table, with a row for each contender that was timed."""
        header = [self.precision]
        for shape in self.timings:
            header += [f"{shape}, ms", "of ours"]
        rows = []
        for each in self.present():
            name = f"**{each.name}**" if each.kind == "ours" else each.name
            cells = [cell for shape in self.timings for cell in self._cells(shape, each.name)]
            rows.append([name, *cells, *self._cosines(each.name)])
        return table([*header, "cosine mean", "worst", ""], rows)

    def words(self) -> Iterator[str]:
        """Yield where ours is not the fastest of those in its class, and what is absent."""
        for shape, timings in self.timings.items():
            peers = [
                each.name
                for each in self.present()
                if each.kind != "ours" and self.in_class(each.name) and timings.has(each.name)
            ]
            if not timings.has(self.ours) or not peers:
                yield f"{self.precision} at {shape}: nothing to compare."
                continue
            best = min(peers, key=timings.median)
            ratio = timings.ratio(best, self.ours)
            won = "no difference to the fastest peer can be told"
            if ratio.low > 1 or ratio.high < 1:
                won = "ours is the fastest" if ratio.low > 1 else "**ours is not the fastest**"
            yield f"{self.precision} at {shape}: {won}; {best} takes {ratio} of the time of ours."
        yield from (f"{self.precision}: {each.name}: {each.absent}" for each in self.contenders if each.absent)

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows of the CSV file, in the order of `CSV`."""
        for each in self.present():
            accuracy = self.accuracies.get(each.name)
            cosines = [f"{accuracy.mean:.6f}", f"{accuracy.least:.6f}"] if accuracy else ["", ""]
            for shape, timings in self.timings.items():
                if timings.has(each.name) and timings.has(self.ours):
                    ratio = timings.ratio(each.name, self.ours)
                    times = [timings.median(each.name), ratio.median, ratio.low, ratio.high]
                    numbers = [f"{value:.4f}" for value in times]
                    yield [self.precision, each.name, shape, *numbers, *cosines, str(self.in_class(each.name)).lower()]

    def present(self) -> Iterator[Contender]:
        """Yield the contenders that were timed somewhere, the fastest at the first shape first."""
        first = next(iter(self.timings.values()))
        timed = [each for each in self.contenders if any(timings.has(each.name) for timings in self.timings.values())]
        yield from sorted(timed, key=lambda each: first.median(each.name) if first.has(each.name) else float("inf"))

    def _cells(self, shape: str, name: str) -> list[str]:
        timings = self.timings[shape]
        if not timings.has(name):
            return ["", ""]
        ratio = str(timings.ratio(name, self.ours)) if timings.has(self.ours) else ""
        return [f"{timings.median(name):.2f}", "1" if name == self.ours else ratio]

    def _cosines(self, name: str) -> list[str]:
        accuracy = self.accuracies.get(name)
        if accuracy is None:
            return ["", "", "not compared"]
        wrong = "not exact" if self.precision == "fp32" else f"mean below {VALID}"
        return [f"{accuracy.mean:.4f}", f"{accuracy.least:.4f}", "" if self.in_class(name) else wrong]
