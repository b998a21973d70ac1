"""Validate: the built model against the original, sample by sample; what passes is the model, unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from engine.errors import JudgementError
from engine.kit import bounds, cases, checkpoint, choices, comparison, hardware, onnx_files, outputs, runners
from engine.kit.bounds import DEFAULTS, Miss
from engine.kit.cases import Case
from engine.kit.comparison import Distance
from engine.recipe.schema import Bound, Metric, Precision, Recipe, Task
from engine.step import Hardware, Report, Step

if TYPE_CHECKING:
    import numpy as np

_TEXT = 60
"""How many letters of a text a reader recognises it by."""
_LISTED = 20


class Validate(Step):
    """Run the built model on every case of the reference and measure how far its answers are off."""

    makes: ClassVar[str] = "validated"
    tools: ClassVar[tuple[str, ...]] = ("numpy", "onnxruntime")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")
    judged: ClassVar[tuple[str, ...]] = ("precision", "cosine", "agreement", "max_abs", "metric")

    task: Task | None = None
    runs_on: Hardware | None = None
    """The GPU that runs the model; None for a CPU."""
    precision: Precision = "fp32"
    cosine: Bound | None = None
    agreement: Bound | None = None
    max_abs: Bound | None = None
    metric: Metric | None = None

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self:
        """Every recipe is validated; a bound that it does not set has a default (`kit/bounds.py`)."""
        asked = recipe.validation
        return cls(
            task=recipe.model.task,
            runs_on=hardware.wanted(recipe),
            precision=recipe.precision,
            cosine=asked.cosine,
            agreement=asked.agreement,
            max_abs=asked.max_abs,
            metric=asked.metric,
        )

    def hardware(self) -> Hardware | None:
        """Return the GPU that runs the model."""
        return self.runs_on

    def tools_used(self) -> tuple[str, ...]:
        """Return what runs the model: ONNX Runtime, or TensorRT on a GPU."""
        return self.tools if self.runs_on is None else ("numpy", self.runs_on.tool)

    def facts_used(self) -> tuple[str, ...]:
        """Return what chooses the kernels: the CPU's instructions and the build that runs on it, or the GPU."""
        return self.facts if self.runs_on is None else ("gpu.name",)

    def run(self, out: Path, *, compiled: Path, reference: Path, checkpoint: Path) -> Report:
        """Return cosine, max_abs, agreement and, with labelled samples, a metric; see `kit/comparison.py`.

        `agreement` is absent where the outputs choose nothing (no logits, and fewer than three texts to be
        neighbours). Raises StepError where the model cannot be run or gives outputs of another shape.
        """
        tried = cases.load(reference)
        kinds = cases.count_kinds(tried)
        print(f"running the built model on {len(tried)} cases: {_listed(kinds)}")
        runner = runners.built(compiled, threads=1)  # sums in one order, however many cores there are
        answers = [runner.run(case.inputs) for case in tried]
        report = _measured(tried, answers, checkpoint, self.task)
        onnx_files.link(compiled, out)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        print(_in_words(report))
        return {"cases": len(tried), "kinds": kinds, "random": "random" in kinds, **report, "bytes": size}

    def judge(self, report: Report) -> None:
        """Hold the worst cosine and max_abs, the share of agreement and the metric against their bounds.

        Raises JudgementError, which lists every bound that was missed.
        """
        if report.get("nonfinite"):
            raise _not_finite(report["nonfinite"], self.precision)
        misses = [*self._worst(report), *self._shares(report)]
        if misses:
            raise _too_far(misses, report, self.precision)

    def _worst(self, report: Report) -> list[Miss]:
        default = DEFAULTS[self.precision]
        found: list[Miss] = []
        if "cosine" in report:
            bound = self.cosine or Bound(at_least=default.cosine)
            found += bounds.missed("cosine", report["cosine"]["worst"], bound, bounds.sample(report["cosine"]))
        elif self.cosine is not None:
            raise _unmeasured("cosine", "no output is a vector, or all are too small to have a direction")
        where = bounds.sample(report["max_abs"])
        found += bounds.missed("max_abs", report["max_abs"]["worst"], self.max_abs, where)
        if self.max_abs is None:
            relative = report["relative"]
            limit = Bound(at_most=default.relative)
            name = "the error as a share of the output's largest value"
            found += bounds.missed(name, relative["worst"], limit, bounds.sample(relative))
        return found

    def _shares(self, report: Report) -> list[Miss]:
        found: list[Miss] = []
        if agreement := report.get("agreement"):
            least = bounds.allowed_changes(DEFAULTS[self.precision].agreement, agreement["choices"])
            differ = f", differing: {_names(agreement['differ'])}" if agreement["differ"] else ""
            found += bounds.missed("agreement", agreement["share"], self.agreement or Bound(at_least=least), differ)
        elif self.agreement is not None:
            raise _unmeasured("agreement", "the outputs choose nothing, or there are fewer than three texts")
        if self.metric is not None:
            if "metric" not in report:
                raise _unmeasured("metric", "no sample has a label, or the outputs are no classes")
            measured = report["metric"]
            original = f" (the original: {measured['original']:.6g}, of {measured['samples']} samples)"
            found += bounds.missed(self.metric.name, measured["value"], self.metric, original)
        return found


def _measured(
    tried: Sequence[Case], answers: Sequence[Mapping[str, np.ndarray]], directory: Path, asked: Task | None
) -> dict[str, Any]:
    embeds = checkpoint.task(directory, asked) == "feature-extraction"
    pooling = (checkpoint.pooling(directory) or "mean") if embeds else None
    usual = outputs.usual(tried, pooling=pooling)
    pairs = list(zip(tried, answers, strict=True))
    measured = [(case, comparison.distance(case, answer, pooling=pooling, usual=usual)) for case, answer in pairs]
    finite = [(case, distance) for case, distance in measured if distance is not None]
    broken = [case.name for case, distance in measured if distance is None]
    if broken:
        return {"nonfinite": broken}
    report: dict[str, Any] = {}
    directions = [(case, distance.cosine) for case, distance in finite if distance.cosine is not None]
    if directions:
        report["cosine"] = _worst(directions, min)
    report["max_abs"] = _worst([(case, distance.max_abs) for case, distance in finite], max)
    report["relative"] = _worst([(case, distance.relative) for case, distance in finite], max)
    neighbours = None if pooling is None else choices.neighbours(tried, answers, pooling)
    report |= _agreement(finite) if neighbours is None else _same_neighbours(neighbours)
    return report | _accuracy(pairs)


def _worst(values: Sequence[tuple[Case, float]], choose: Any) -> dict[str, Any]:
    case, worst = choose(values, key=lambda pair: pair[1])
    mean = sum(value for _, value in values) / len(values)
    return {"worst": worst, "mean": mean, "sample": case.name, "text": case.text[:_TEXT]}


def _agreement(measured: Sequence[tuple[Case, Distance]]) -> dict[str, Any]:
    made = sum(distance.choices for _, distance in measured)
    changed = sum(distance.changed for _, distance in measured)
    differ = [case.name for case, distance in measured if distance.changed]
    if not made:
        return {}
    return {"agreement": {"share": 1 - changed / made, "differ": differ, "choices": made}}


def _same_neighbours(same: Mapping[str, bool]) -> dict[str, Any]:
    differ = [name for name, kept in same.items() if not kept]
    if not same:
        return {}
    return {"agreement": {"share": 1 - len(differ) / len(same), "differ": differ, "choices": len(same)}}


def _accuracy(pairs: Sequence[tuple[Case, Mapping[str, np.ndarray]]]) -> dict[str, Any]:
    """Return the share of labelled samples that get their label, from the built model and from the original."""
    ours, theirs = [], []
    for case, answer in pairs:
        name = next(iter(case.outputs))
        expected, got = choices.predicted(case.outputs[name]), choices.predicted(answer[name])
        if case.label is not None and expected is not None:
            ours.append(got == case.label)
            theirs.append(expected == case.label)
    if not ours:
        return {}
    value, original = sum(ours) / len(ours), sum(theirs) / len(theirs)
    return {"metric": {"name": "accuracy", "value": value, "original": original, "samples": len(ours)}}


def _in_words(report: Mapping[str, Any]) -> str:
    if "nonfinite" in report:
        return f"outputs that are not finite in {len(report['nonfinite'])} cases"
    parts = [
        f"{name} {report[name]['worst']:.6g} at worst, {report[name]['mean']:.6g} on average"
        for name in ("cosine", "max_abs")
        if name in report
    ]
    return "; ".join(parts + ([f"agreement {report['agreement']['share']:.4g}"] if "agreement" in report else []))


def _listed(kinds: Mapping[str, int]) -> str:
    words = {"random": "random tensors, since there are no samples"}
    return ", ".join(f"{count} {words.get(kind, kind)}" for kind, count in kinds.items())


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def _too_far(misses: Sequence[Miss], report: Mapping[str, Any], precision: Precision) -> JudgementError:
    facts = [str(miss) for miss in misses[1:]]
    if report["random"]:
        facts.append("the inputs are random tensors; give validate.samples to judge it on real ones")
    return JudgementError(
        f"The built model is too far from the original: {misses[0]}",
        facts,
        f"{_way_out(precision)}; or, if this is close enough for you, set the bound under `validate`",
    )


def _way_out(precision: Precision) -> str:
    if precision == "fp32":
        return (
            "no precision is higher than fp32, and rounding in fp32 does not explain it: do the samples suit the model?"
        )
    return "choose a higher precision"


def _not_finite(names: Sequence[str], precision: Precision) -> JudgementError:
    return JudgementError(
        "The built model gives numbers that are not finite (NaN or infinity) where the original gives finite ones",
        [f"in {len(names)} cases: {_names(names)}"],
        "do the samples suit the model? inputs far outside what it was trained on overflow even in fp32"
        if precision == "fp32"
        else "a precision with too small a range for this model? try fp32",
    )


def _unmeasured(number: str, why: str) -> JudgementError:
    return JudgementError(
        f"The recipe bounds {number}, which could not be measured", [why], f"take validate.{number} out, or add samples"
    )
