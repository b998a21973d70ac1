"""Validate ONNX: the graph for a GPU is compared with the original on a CPU, before TensorRT compiles the graph."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.accuracy import built_model
from engine.kit.accuracy import measure as accuracy
from engine.kit.accuracy.gate import Judged
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.onnx import ir_models, mapped_weights, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import calibration, trials, work_by_precision
from engine.kit.quantization.half import emulation
from engine.runtimes.onnxruntime import session as ort
from engine.step import Section, Source

if TYPE_CHECKING:
    import onnxruntime

    from engine.recipe.schema import Recipe


class ValidateOnnx(Judged):
    """Compare the graph for a GPU with the original on a CPU, with the cases and bounds of `validate`.

    A graph whose outputs are too far from the original's on a CPU is too far on any GPU, too, so the step finds errors
    of the graph without a GPU.
    """

    makes: ClassVar[str] = "checked"
    section: ClassVar[Section | None] = Section.VALIDATION_ONNX
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*ir_models.TOOLS, "onnxruntime")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")
    judged: ClassVar[tuple[str, ...]] = (*Judged.judged, "candidate")
    keyed_if_set: ClassVar[tuple[str, ...]] = (*Judged.keyed_if_set, "tf32")

    samples: Source | None = None
    """The samples on which the model was calibrated, and which must not be among the cases of the validation."""
    limit: int | None = None
    candidate: bool = False
    """Whether the plan compares runtimes, so that the distance on the device decides, and not this one."""
    tf32: bool = False
    """Whether the products of the graph are rounded to TF32, because the recipe says that the GPU computes in it."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a model that runs on a GPU; None for a CPU, where `validate` compares the same graph.

        None, too, for a runtime that stands for several: each of them has a graph of its own.
        """
        runtime = recipe.runtime
        if runtime.runs_on_cpu(recipe.target) or not runtime.from_graph or runtime.candidates(recipe):
            return None
        calibrate = None if recipe.precision == "fp32" else recipe.calibrate
        step = cls.with_bounds(
            recipe,
            samples=None if calibrate is None else Source(uri=calibrate.samples, part="samples"),
            limit=None if calibrate is None else calibrate.limit,
            tf32=bool(recipe.tf32),
        )
        return step if step.counts else step.model_copy(update={"opt": {}})

    def as_candidate(self) -> Self:
        """Return the step that judges only the multiplications, which no later step counts."""
        return self.model_copy(update={"candidate": True})

    def judge(self, report: AccuracyReport) -> None:
        """Raise JudgementError where a bound is missed; for a candidate, where it is the bound on multiplications."""
        if not self.candidate:
            super().judge(report)
        elif report.work is not None:
            self._judge_shares(report.work)

    @property
    def counts(self) -> bool:
        """Whether the step counts multiplications: for any precision but fp32, and where the recipe bounds a share."""
        return self.precision != "fp32" or self.precision_share is not None

    def tools_used(self) -> tuple[str, ...]:
        return self.tools if self.samples is None else (*self.tools, "tokenizers")

    def run(
        self, out: Path, *, quantized: Path, reference: Path, checkpoint: Path, samples: Path | None = None
    ) -> AccuracyReport:
        """Return the report of `accuracy.measure`, with the shares of the multiplications in each precision.

        The field `emulated` names the half precisions of the graph, and "tf32" where the recipe asks for TF32.

        Raises StepError where the graph cannot run, has outputs of another shape than the original, or was calibrated
        on one of the cases.
        """
        graph = onnx_files.load_graph(quantized)
        if samples is not None:
            inputs = onnx_files.inputs(graph)
            calibration.refuse_overlap(samples, checkpoint, inputs, limit=self.limit, reference=reference)
        half = emulation.kinds(graph)
        kinds = [*half, *(["tf32"] if self.tf32 else [])]
        with TemporaryDirectory(dir=out.parent) as folder:
            session = _session(quantized, Path(folder), half=bool(half), tf32=self.tf32)
            emulated = f", {' and '.join(kinds)} emulated" if kinds else ""
            what = f"the ONNX model on the CPU{emulated}"
            report = accuracy.measure(
                lambda inputs: ort.run(session, inputs),
                reference,
                checkpoint,
                self.task,
                what=what,
                boxes_along=self.boxes_along,
            )
        work = None
        if self.counts:
            with TemporaryDirectory(dir=out.parent) as folder:
                count = functools.partial(work_by_precision.multiplications, quantized, scratch=Path(folder))
                work = built_model.precision_shares(count, graph, self.opt, reference)
        onnx_files.link(quantized, out)
        return replace(report, emulated=", ".join(kinds) or None, work=work)


def _session(quantized: Path, scratch: Path, *, half: bool, tf32: bool) -> onnxruntime.InferenceSession:
    if not (half or tf32):
        return ort.session(quantized, threads=1, prepack=ort.prepacks(quantized))
    passes = Pipeline(ir_models.load(quantized))
    with mapped_weights.spilling(scratch):
        if half:
            passes.run(emulation.emulate)
        if tf32:
            passes.run(emulation.emulate_tf32)
    return trials.opened(passes.model, scratch)
