"""Measure: run a model on the cases of the reference, and compare its outputs with the original's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine import tasks
from engine.errors import StepError
from engine.kit.accuracy import agreement, comparison, detections, in_batch, outputs, variation
from engine.kit.accuracy.agreement import NO_CHOICES, Choices
from engine.kit.accuracy.comparable_outputs import Comparable
from engine.kit.accuracy.comparison import Distance
from engine.kit.accuracy.detections import Detector
from engine.kit.accuracy.outputs import Usual
from engine.kit.accuracy.report import AccuracyReport, Agreement, Least, MetricReport, Worst
from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.checkpoints import sentences
from engine.kit.inputs import cases, token_rows
from engine.kit.inputs.cases import Case
from engine.text import lists

if TYPE_CHECKING:
    import numpy as np

    from engine.kit.accuracy.in_batch import Takes
    from engine.kit.checkpoints.sentences import Pooling
    from engine.kit.inputs.token_rows import Padding

    Answer = Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]
    Answered = tuple[Case, Mapping[str, np.ndarray]]

_AGAIN = 5
"""Every fifth case is run twice, to find a model that draws random numbers."""
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
    by_lengths: bool = False,
    boxes_along: Mapping[str, int] = MappingProxyType({}),
) -> AccuracyReport:
    """Run a model on the cases of the reference; return cosine, max_abs, agreement and, with labels, a metric.

    Where the built model gives numbers that are not finite, or an output of another size, as a detector does that finds
    one box less, the report names the cases and has no distance. The report has no `agreement` where outputs make no
    choice, such as outputs without logits, or embeddings of fewer than three texts. `what` is the built model's name in
    the log. `boxes_along` is that of `Bounded`. `takes` tells by the shapes of a case whether the model accepts the
    case; the report lists refused cases under `outside`. With `by_lengths`, the model gets right-padded masks only, and
    a note counts the other cases. Raises StepError where the model cannot run, accepts none of the cases, or gives an
    output with another number of axes than the original's output.
    """
    every = cases.load(reference)

    def fits(inputs: Mapping[str, np.ndarray]) -> bool:
        return not by_lengths or token_rows.are_right_padded(inputs)

    tried, outside = _divided([case for case in every if fits(case.inputs)], takes)
    unasked = cases.count_kinds(case for case in every if not fits(case.inputs))
    kinds = cases.count_kinds(tried)
    print(f"running {what} on {len(tried)} cases: {_listed(kinds)}")
    counted = AccuracyReport(cases=len(tried), kinds=kinds, random="random" in kinds, outside=tuple(outside))
    answered = [(case, answer(case.inputs)) for case in tried]
    detector = Detector.of(tried, checkpoint)
    embeds = tasks.find(checkpoints.task(checkpoint, task)).embeds
    pooling = (sentences.pooling(checkpoint) or "mean") if embeds else None
    padding = cases.padding(reference)
    takes_tensors = lambda inputs: takes(_shapes(inputs)) and fits(inputs)  # noqa: E731
    report = _measured(
        counted,
        answered,
        answer=answer,
        detector=detector,
        boxes_along=boxes_along,
        padding=padding,
        pooling=pooling,
        takes=takes_tensors,
    )
    note = f"not compared, as the runtime takes lengths of texts and no masks: {lists.counts(unasked)}"
    notes = (*report.notes, *([note] if unasked else []))
    report = replace(report, undecided=_undecided(answer, answered), notes=notes)
    print(_in_words(report))
    return report


def _undecided(answer: Answer, answered: Sequence[Answered]) -> tuple[str, ...]:
    """Return the names of the cases to which the model gives two answers, of every fifth case and one of each kind."""
    names: list[str] = []
    kinds: set[str] = set()
    for number, (case, first) in enumerate(answered):
        if case.kind not in kinds or number % _AGAIN == 0:
            again = answer(case.inputs)
            if not all(cases.is_same_but_rounding(output, again[name]) for name, output in first.items()):
                names.append(case.name)
        kinds.add(case.kind)
    return tuple(names)


def _divided(
    candidates: Sequence[Case], takes: Callable[[Mapping[str, tuple[int, ...]]], bool]
) -> tuple[list[Case], list[str]]:
    """Return the cases that the model accepts, and the names of the cases that the model refuses.

    Raises StepError where the model accepts none of the cases.
    """
    if not candidates:
        raise StepError(
            "the runtime takes lengths of texts and no masks, and no mask of the cases is a length",
            hint="give validate.samples as texts, or as tensors with masks that hide the end of a row alone",
        )
    tried = [case for case in candidates if takes(_shapes(case.inputs))]
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


def _shapes(inputs: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: tensor.shape for name, tensor in inputs.items()}


def _measured(
    counted: AccuracyReport,
    answered: Sequence[Answered],
    *,
    answer: Answer,
    detector: Detector | None,
    boxes_along: Mapping[str, int],
    padding: Padding | None,
    pooling: Pooling | None,
    takes: Takes,
) -> AccuracyReport:
    reshaped = [text for case, each in answered for text in comparison.other_sizes(case, each)]
    if reshaped:
        return replace(counted, reshaped=tuple(reshaped))
    answered = [(case, {name: comparison.answer(case, name, each) for name in case.outputs}) for case, each in answered]
    metric = _accuracy(answered)
    objects = None
    if detector is not None:
        answered = [(case, detector.aligned(case.outputs, each)) for case, each in answered]
        objects = [(case.name, detector.choices(case.outputs, each)) for case, each in answered]
    comparable = Comparable.of([case for case, _ in answered], boxes_along)
    answered = [
        (replace(case, outputs=comparable.outputs(case.outputs)), comparable.outputs(each)) for case, each in answered
    ]
    tried = [case for case, _ in answered]
    unanswered = tuple(case.name for case in tried if outputs.has_empty_row(case))
    if unanswered:
        return replace(counted, unanswered=unanswered)
    usual = outputs.usual(tried, pooling=pooling)
    measured = [
        (case, name, comparison.of_output(name, case, each[name], pooling=pooling, usual=usual[name]))
        for case, each in answered
        for name in case.outputs
    ]
    finite = [(case, name, distance) for case, name, distance in measured if distance is not None]
    if len(finite) < len(measured):
        broken = dict.fromkeys(case.name for case, _, distance in measured if distance is None)
        return replace(counted, nonfinite=tuple(broken))
    directions = [(case, name, each.cosine) for case, name, each in finite if each.cosine is not None]
    neighbours = None if pooling is None else agreement.neighbours(tried, [each for _, each in answered], pooling)
    among = in_batch.measure(
        lambda inputs: comparable.outputs(answer(inputs)),
        tried,
        padding=padding,
        pooling=pooling,
        usual=usual,
        takes=takes,
    )
    noted = replace(counted, notes=comparable.notes(), cosine=_worst(directions, lowest=True))
    return replace(
        _varied(noted, answered, pooling=pooling, usual=usual),
        max_abs=_worst([(case, name, distance.max_abs) for case, name, distance in finite]),
        relative=_worst([(case, name, distance.relative) for case, name, distance in finite]),
        in_batch=_worst([*among.equal, *among.padded], lowest=True) if among else None,
        in_equal_batch=_worst(among.equal, lowest=True) if among else None,
        joins_no_rows=among.reason if among else None,
        agreement=_alike(objects, detections.NEAR_TIE_IN_WORDS)
        if objects is not None
        else _agreement(finite)
        if neighbours is None
        else _alike(list(neighbours.items()), agreement.NEAR_NEIGHBOURS_IN_WORDS),
        metric=metric,
    )


def _varied(
    counted: AccuracyReport, answered: Sequence[Answered], *, pooling: Pooling | None, usual: Mapping[str, Usual]
) -> AccuracyReport:
    """Return the report with the variation and the rank of each output, and with notes on what they cannot show."""
    shares: list[Least] = []
    faint: list[Least] = []
    ranks: list[Least] = []
    notes: list[str] = []
    for name, size in usual.items():
        each = [(case, answer[name]) for case, answer in answered if name in case.outputs]
        measured = variation.of_output(name, each, pooling=pooling)
        if size.is_near_zero and each[0][1].dtype.kind == "f":
            notes.append(f"{name} is near zero in all cases (at most {size.largest:.2g}), which says little")
        elif measured is None and len(each) > 1 and each[0][1].dtype.kind == "f":
            notes.append(f"{name} is the same in all cases of the original, which says little")
        if measured is not None:
            (faint if size.is_near_zero else shares).append(Least(measured.share, name))
            if measured.rank is not None and not size.is_near_zero:
                ranks.append(Least(measured.rank, name))
    left_out = outputs.left_out([case for case, _ in answered], usual=usual, pooling=pooling)
    result = "" if counted.cosine else ", so there is no cosine"
    notes += [f"the cosine leaves out {each}{result}" for each in left_out]
    return replace(
        counted,
        notes=(*counted.notes, *notes),
        variation=_least(shares),
        variation_near_zero=_least(faint),
        rank=_least(ranks),
    )


def _least(values: Sequence[Least]) -> Least | None:
    return min(values, key=lambda each: each.worst, default=None)


def _worst(values: Sequence[tuple[Case, str, float]], *, lowest: bool = False) -> Worst | None:
    """Return the mean of values and the worst, the largest or, with `lowest`, the smallest; None without values."""
    if not values:
        return None
    choose = min if lowest else max
    case, name, worst = choose(values, key=lambda each: each[2])
    mean = sum(value for _, _, value in values) / len(values)
    several = len({name for _, name, _ in values}) > 1
    return Worst(worst=worst, mean=mean, sample=case.name, text=case.text[:_TEXT], output=name if several else "")


def _agreement(measured: Sequence[tuple[Case, str, Distance]]) -> Agreement | None:
    counted = [(case.name, distance.choices) for case, _, distance in measured]
    classes = {chosen for case, name, _ in measured for chosen in agreement.classes(name, case)}
    alike = _alike(counted, agreement.NEAR_TIE_IN_WORDS)
    return alike and replace(alike, one_class=len(classes) == 1 and alike.choices > 1)


def _alike(counted: Sequence[tuple[str, Choices]], gap: str) -> Agreement | None:
    """Return the agreement over the choices of cases, each with the case's name; None where there are no choices."""
    total = sum((choices for _, choices in counted), NO_CHOICES)
    if not total.count:
        return None
    differ = tuple(dict.fromkeys(name for name, choices in counted if choices.changed))
    return Agreement(
        1 - total.changed / total.count,
        differ,
        total.count,
        near_ties=total.near_ties,
        gap=gap if total.near_ties else "",
    )


def _accuracy(answered: Sequence[Answered]) -> MetricReport | None:
    """Return the accuracy of the built model and of the original on the labelled samples; None without labels."""
    ours, theirs = [], []
    for case, answer in answered:
        name = next(iter(case.outputs))
        expected, got = agreement.predicted(case.outputs[name]), agreement.predicted(answer[name])
        if case.label is not None and expected is not None:
            ours.append(got == case.label)
            theirs.append(expected == case.label)
    count = len(ours)
    if not count:
        return None
    return MetricReport(name="accuracy", value=sum(ours) / count, original=sum(theirs) / count, samples=count)


def _in_words(report: AccuracyReport) -> str:
    if report.reshaped:
        return f"outputs of another size in {len(report.reshaped)} cases"
    if report.unanswered:
        return f"the original gives no finite answer in {len(report.unanswered)} cases"
    if report.nonfinite:
        return f"outputs that are not finite in {len(report.nonfinite)} cases"
    parts = [
        f"{name} {measured.worst:.6g} at worst, {measured.mean:.6g} on average"
        for name, measured in (("cosine", report.cosine), ("max_abs", report.max_abs))
        if measured is not None
    ]
    parts += [f"agreement {report.agreement.shown:.4g}"] if report.agreement else []
    return "; ".join([*parts, *report.notes])


def _listed(kinds: Mapping[str, int]) -> str:
    words = {"random": "random tensors, since there are no samples"}
    return lists.counts({words.get(kind, kind): count for kind, count in kinds.items()})
