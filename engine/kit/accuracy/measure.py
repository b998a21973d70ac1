"""Measure: run a model on the cases of the reference, and compare its outputs with the original's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import agreement, comparison, outputs
from engine.kit.accuracy.comparison import Distance
from engine.kit.accuracy.report import AccuracyReport, Agreement, MetricReport, Worst
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import sentences
from engine.kit.inputs import cases
from engine.kit.inputs.cases import Case
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    Answer = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]

_LISTED = 8
"""The largest number of case names in a line of the log."""
_TEXT = 60
"""The largest number of characters of a case's text in a report."""


def measure(
    answer: Answer,
    reference: Path,
    checkpoint: Path,
    task: str | None,
    *,
    what: str,
    takes: Callable[[Mapping[str, tuple[int, ...]]], bool] = lambda _: True,
) -> AccuracyReport:
    """Run a model on the cases of the reference; return cosine, max_abs, agreement and, with labels, a metric.

    Where the built model gives numbers that are not finite, the report names the cases and has no distance. The report
    has no `agreement` where outputs make no choice, such as outputs without logits, or embeddings of fewer than three
    texts. `what` is the built model's name in the log. `takes` tells by the shapes of a case whether the model accepts
    the case; the report lists refused cases under `outside`. Raises StepError where the model cannot run, accepts none
    of the cases, or gives an output whose shape differs from the shape of the original's output.
    """
    tried, outside = _divided(cases.load(reference), takes)
    kinds = cases.count_kinds(tried)
    print(f"running {what} on {len(tried)} cases: {_listed(kinds)}")
    counted = AccuracyReport(cases=len(tried), kinds=kinds, random="random" in kinds, outside=tuple(outside))
    report = _measured(counted, tried, [answer(case.inputs) for case in tried], checkpoint=checkpoint, task=task)
    print(_in_words(report))
    return report


def _divided(
    candidates: Sequence[Case], takes: Callable[[Mapping[str, tuple[int, ...]]], bool]
) -> tuple[list[Case], list[str]]:
    """Return the cases that the model accepts, and the names of the cases that the model refuses.

    Raises StepError where the model accepts none of the cases.
    """
    tried = [case for case in candidates if takes({name: tensor.shape for name, tensor in case.inputs.items()})]
    outside = [case.name for case in candidates if case not in tried]
    if not tried:
        shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in candidates[0].inputs.items())
        raise StepError(
            "no profile of the engine takes any of the cases that it would be validated on",
            [f"{candidates[0].name}: {shapes}"],
            "widen a profile, or give validate.samples that fit into one",
        )
    if outside:
        print(f"{len(outside)} cases are left out, since no profile takes their shapes: {', '.join(outside[:_LISTED])}")
    return tried, outside


def _measured(
    counted: AccuracyReport,
    tried: Sequence[Case],
    answers: Sequence[Mapping[str, np.ndarray]],
    *,
    checkpoint: Path,
    task: str | None,
) -> AccuracyReport:
    embeds = tasks.find(checkpoints.task(checkpoint, task)).embeds
    pooling = (sentences.pooling(checkpoint) or "mean") if embeds else None
    usual = outputs.usual(tried, pooling=pooling)
    pairs = list(zip(tried, answers, strict=True))
    measured = [(case, comparison.distance(case, answer, pooling=pooling, usual=usual)) for case, answer in pairs]
    finite = [(case, distance) for case, distance in measured if distance is not None]
    broken = [case.name for case, distance in measured if distance is None]
    if broken:
        return replace(counted, nonfinite=tuple(broken))
    directions = [(case, distance.cosine) for case, distance in finite if distance.cosine is not None]
    neighbours = None if pooling is None else agreement.neighbours(tried, answers, pooling)
    return replace(
        counted,
        cosine=_worst(directions, lowest=True) if directions else None,
        max_abs=_worst([(case, distance.max_abs) for case, distance in finite]),
        relative=_worst([(case, distance.relative) for case, distance in finite]),
        agreement=_agreement(finite) if neighbours is None else _same_neighbours(neighbours),
        metric=_accuracy(pairs),
    )


def _worst(values: Sequence[tuple[Case, float]], *, lowest: bool = False) -> Worst:
    """Return the mean of the values and the worst value, which is the largest or, with `lowest`, the smallest."""
    choose = min if lowest else max
    case, worst = choose(values, key=lambda pair: pair[1])
    mean = sum(value for _, value in values) / len(values)
    return Worst(worst=worst, mean=mean, sample=case.name, text=case.text[:_TEXT])


def _agreement(measured: Sequence[tuple[Case, Distance]]) -> Agreement | None:
    choices = sum(distance.choices for _, distance in measured)
    changed = sum(distance.changed for _, distance in measured)
    differ = tuple(case.name for case, distance in measured if distance.changed)
    return Agreement(share=1 - changed / choices, differ=differ, choices=choices) if choices else None


def _same_neighbours(same: Mapping[str, bool]) -> Agreement | None:
    differ = tuple(name for name, is_same in same.items() if not is_same)
    return Agreement(share=1 - len(differ) / len(same), differ=differ, choices=len(same)) if same else None


def _accuracy(pairs: Sequence[tuple[Case, Mapping[str, np.ndarray]]]) -> MetricReport | None:
    """Return the accuracy of the built model and of the original on the labelled samples; None without labels."""
    ours, theirs = [], []
    for case, answer in pairs:
        name = next(iter(case.outputs))
        expected, got = agreement.predicted(case.outputs[name]), agreement.predicted(answer[name])
        if case.label is not None and expected is not None:
            ours.append(got == case.label)
            theirs.append(expected == case.label)
    if not ours:
        return None
    value, original = sum(ours) / len(ours), sum(theirs) / len(theirs)
    return MetricReport(name="accuracy", value=value, original=original, samples=len(ours))


def _in_words(report: AccuracyReport) -> str:
    """Return the measured numbers as a line of the log."""
    if report.nonfinite:
        return f"outputs that are not finite in {len(report.nonfinite)} cases"
    parts = [
        f"{name} {measured.worst:.6g} at worst, {measured.mean:.6g} on average"
        for name, measured in (("cosine", report.cosine), ("max_abs", report.max_abs))
        if measured is not None
    ]
    return "; ".join([*parts, *([f"agreement {report.agreement.share:.4g}"] if report.agreement else [])])


def _listed(kinds: Mapping[str, int]) -> str:
    """Return a line of the log with the number of cases of each kind."""
    words = {"random": "random tensors, since there are no samples"}
    return lists.counts({words.get(kind, kind): count for kind, count in kinds.items()})
