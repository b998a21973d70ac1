"""Validate ONNX: the graph that a GPU is to run against the original, on a CPU and before anything is compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.accuracy import measure as accuracy
from engine.kit.accuracy.gate import Judged
from engine.kit.accuracy.report import AccuracyReport
from engine.kit.onnx import onnx_files
from engine.kit.quantization import calibration
from engine.kit.quantization.half import emulation
from engine.recipe.schema import Recipe
from engine.runtimes import registry
from engine.runtimes.onnxruntime import session as ort
from engine.step import Section, Source

if TYPE_CHECKING:
    import onnxruntime


class ValidateOnnx(Judged):
    """Hold the graph against the same cases and bounds as `validate` holds what the GPU makes of it.

    What is too far from the original here is too far on any GPU: this is found on any machine, and without one.
    """

    makes: ClassVar[str] = "checked"
    section: ClassVar[Section | None] = Section.VALIDATION_ONNX
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("numpy", "onnx", "onnxruntime")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")

    samples: Source | None = None
    """What the model was calibrated on: nothing of it may be among the cases."""
    limit: int | None = None

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a GPU; what a CPU is to run, `validate` runs itself."""
        if registry.of(recipe).runs_on_cpu(recipe.target):
            return None
        asked = recipe.calibrate
        calibrated = asked is not None and recipe.precision != "fp32"
        return cls(
            samples=Source(uri=asked.samples) if asked is not None and calibrated else None,
            limit=asked.limit if asked is not None and calibrated else None,
            **cls.fields_of(recipe),
        )

    def tools_used(self) -> tuple[str, ...]:
        """Return what runs the graph, and what makes inputs of the samples."""
        return self.tools if self.samples is None else (*self.tools, "tokenizers")

    def run(
        self, out: Path, *, quantized: Path, reference: Path, checkpoint: Path, samples: Path | None = None
    ) -> AccuracyReport:
        """Return what `accuracy.measure` finds; `emulated` names the half precisions of the graph, if any.

        Raises StepError as that does, and where the model was calibrated on one of the cases.
        """
        graph = onnx_files.load_graph(quantized)
        if samples is not None:
            wanted = onnx_files.inputs(graph)
            calibration.refuse_overlap(samples, checkpoint, wanted, limit=self.limit, reference=reference)
        kinds = emulation.kinds(graph)
        with TemporaryDirectory(dir=out.parent) as folder:
            session = _session(quantized, kinds, Path(folder))
            emulated = f", {' and '.join(kinds)} emulated" if kinds else ""
            what = f"the ONNX model on the CPU{emulated}"
            report = accuracy.measure(
                lambda inputs: ort.run(session, inputs), reference, checkpoint, self.task, what=what
            )
        onnx_files.link(quantized, out)
        return replace(report, emulated=", ".join(kinds) or None)


def _session(quantized: Path, kinds: list[str], scratch: Path) -> onnxruntime.InferenceSession:
    if not kinds:
        return ort.session(quantized, threads=1)
    model = onnx_files.load(quantized)
    emulation.emulate(model, quantized)
    return ort.unoptimized_graph(model, scratch)
