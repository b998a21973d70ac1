"""Quantize: the ONNX graph is converted to the precision of the recipe."""

from __future__ import annotations

import functools
import importlib
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from engine import tasks
from engine.kit.inputs.cases import Case
from engine.kit.onnx import graphs, ir_models, mapped_weights, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import calibration, keep_in, precisions, trials
from engine.kit.quantization.calibration import Calibrated
from engine.kit.quantization.keep_in import NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import (
    HALVES,
    DynamicReport,
    GraphsReport,
    HalfReport,
    Inputs,
    QdqReport,
    QuantizeReport,
    StaticReport,
    WeightOnlyReport,
)
from engine.runtimes.preparation import Lowering
from engine.step import Section, TypedReport

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

Lower = Literal["fp16", "bf16", "int8", "fp8", "int4"]

WeightsOnly = Literal["int4 weights", "int8 weights"]

_ROOM = "engine.kit.quantization"
_DYNAMIC, _STATIC, _WEIGHT_ONLY = "dynamic.dynamic_int8", "static.static_int8", "weight_only"
_FALLBACK = "engine.kit.accuracy.fallback"
_QDQ, _HALF, _SIGNATURES = "qdq.qdq", "half.half_search", "half.signatures"
_PARTS: Mapping[str, tuple[str, ...]] = {
    "dynamic": (_DYNAMIC, _STATIC), "int4 weights": (_WEIGHT_ONLY,), "int8 weights": (_WEIGHT_ONLY,),
    "fp16": (_HALF,), "bf16": (_HALF,), "int8": (_QDQ, _HALF), "fp8": (_QDQ, _HALF), "int4": (_QDQ, _HALF),
}  # fmt: skip
"""The modules of `_ROOM` that quantize in a way; the key of a job covers those of its own way."""
_BITS: Mapping[str, int] = {"int4 weights": 4, "int8 weights": 8}
_WITHOUT_VNNI = frozenset({"avx2", "avx512"})


class Quantize(Calibrated):
    """Lower the precision of the nodes that tolerate fewer bits, and report which nodes keep their precision.

    For a CPU the precision is dynamic int8, with scaled activations; of most graphs that take images it is static int8,
    which is calibrated; or weights alone are in int4 or int8. For a GPU the graph itself sets the precision of every
    tensor, as TensorRT 11 and TensorRT-RTX need it: fp16 or bf16; or int8, fp8 or int4 between Q/DQ pairs, and the rest
    in fp16. The quantized graph is the same for every GPU and compiler, but for the normalizations in `wide_sums`.
    """

    makes: ClassVar[str] = "quantized"
    report: ClassVar[type[TypedReport] | None] = QuantizeReport
    section: ClassVar[Section | None] = Section.PRECISION
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*ir_models.TOOLS, "onnxruntime")
    keyed_if_set: ClassVar[tuple[str, ...]] = ("wide_sums", "falls_back", "task", "opt")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")
    """The facts that decide ONNX Runtime's kernels on the CPU, where samples run to measure ranges of tensors."""

    way: Literal["dynamic"] | WeightsOnly | Lower = "dynamic"
    """How the precision is lowered; "dynamic" is int8 for a CPU, also where a graph gets static int8."""
    reduce_range: bool = False
    """Whether weights of dynamic int8 are limited to 7 bits.

    Without VNNI, x86 multiplies uint8 by int8 with VPMADDUBSW, whose 16-bit sums saturate. ONNX Runtime's guide
    "Quantize ONNX Models" advises 7 bits for AVX2 and AVX512 wherever weights are quantized per channel.
    """

    opset: int = 23
    """The newest opset that the runtime of dynamic int8 or bf16 reads.

    It has operators that are faster than older ones, and convolutions in bf16.
    """
    falls_back: bool = False
    """Whether the int8 model is compared with the original, and stays in fp32 where it misses a default bound."""
    task: str | None = None
    """The task that decides how outputs are compared."""
    opt: Mapping[str, int] = {}
    """The optimum of each axis in the first profile: the shape for which multiplications are counted."""
    wide_sums: tuple[str, ...] = ()
    """The operators that may sum in half precision, because the runtime's kernels for it sum in fp32."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a runtime that takes its precision from the graph; None for fp32 and other runtimes."""
        step = cls._for_recipe(recipe)
        return step and step.model_copy(update={"keep_in": recipe.quantize.get("keep_in", {})})

    @classmethod
    def _for_recipe(cls, recipe: Recipe) -> Self | None:
        precision = recipe.precision
        lowering = recipe.runtime.lowering(recipe)
        if lowering is Lowering.DYNAMIC:
            # A text model keeps dynamic int8, which needs no samples, unless the recipe names some.
            draws = recipe.calibrate is not None or not _takes_texts(recipe)
            step = cls.calibrating(recipe) if draws else cls()
            reduce_range = recipe.target.isa in _WITHOUT_VNNI
            opset = recipe.runtime.newest_opset(recipe)
            options: dict[str, Any] = {"reduce_range": reduce_range, "opset": opset, "own_texts": False}
            if recipe.falls_back:
                opt = {axis: int(extent.opt) for profile in recipe.profiles[:1] for axis, extent in profile.items()}
                options |= {"falls_back": True, "task": recipe.model.task, "opt": opt}
            return step.model_copy(update=options)
        if lowering is Lowering.WEIGHTS_ONLY:
            return cls(way="int4 weights" if precision == "int4" else "int8 weights")
        if lowering is None or precision == "fp32":
            return None
        step = cls.calibrating(recipe, draws=precision not in HALVES, way=precision)
        if precision == "fp16":
            return step.model_copy(update={"wide_sums": recipe.runtime.sums_in_fp32(recipe)})
        if precision != "bf16":
            return step
        opset = min(recipe.runtime.newest_opset(recipe), _part(_SIGNATURES).BF16_OPSET)  # the same for all that read it
        return step.model_copy(update={"opset": opset})

    @property
    def lower(self) -> Lower | None:
        """The precision of a graph for GPUs; None for the ways of CPUs."""
        if self.way == "dynamic" or self.way == "int4 weights" or self.way == "int8 weights":  # noqa: PLR1714  for mypy
            return None
        return self.way

    def tools_used(self) -> tuple[str, ...]:
        return (*self.tools, *self.calibration_tools)

    def code_used(self) -> tuple[str, ...]:
        """Return the modules that quantize in the way of this step."""
        judging = (_FALLBACK, *_fallback().code(), *tasks.modules(self.task)) if self.falls_back else ()
        return (*(f"{_ROOM}.{part}" for part in _PARTS[self.way]), *judging)

    def inputs_used(self) -> tuple[str, ...]:
        """Return the step's inputs: the model, what calibration needs, and the graph with the names in `keep_in`."""
        names = ("shaped",) if self.keep_in else ()
        if self.lower is None:
            read = {"checkpoint": self.reads_checkpoint or self.falls_back, "reference": self.falls_back}
            return ("fused", *(name for name, is_read in read.items() if is_read), *names)
        return ("fused", "reference" if self.way in HALVES and self.samples is None else "checkpoint", *names)

    def run(
        self,
        out: Path,
        *,
        fused: Path,
        reference: Path | None = None,
        checkpoint: Path | None = None,
        samples: Path | None = None,
        shaped: Path | None = None,
    ) -> QuantizeReport:
        """Write the quantized model, and return a report; for a model of several graphs, a report for each graph.

        A model that cannot be quantized is left unchanged, and `unquantized` in the report says why. So is a model of
        images where int8 misses a default bound on the cases of `reference`. Raises FieldError
        for a name in `keep_in` that the graph `shaped` does not have, and StepError where the samples do not suit the
        model, or where ONNX Runtime fails.
        """
        if shaped is not None:
            keep_in.refuse_unknown(self.keep_in, shaped)
        if self.lower is None:
            for_cpu = functools.partial(self._for_cpu, fused, shaped, checkpoint=checkpoint, samples=samples)
            report = graphs.each(for_cpu, fused, out, together=_together)
            return self._kept(report, fused, out, reference=reference, checkpoint=checkpoint)
        try:
            precisions.refuse_half(onnx_files.load_graph(fused), self.lower)
            if reference is None:
                cases = self.cases(fused, checkpoint, samples)
            else:
                cases = calibration.from_reference(reference)
            with (
                precisions.in_float32(fused, out.parent) as single,
                TemporaryDirectory(dir=out.parent) as folder,
                mapped_weights.spilling(Path(folder)),
            ):
                model, report = self._lowered(single, cases, self.lower, shaped, Path(folder))
                onnx_files.save(model, out)
        except LeftAloneError as reason:
            return _left_alone(fused, out, reason)
        sizes = (precisions.size(fused), precisions.size(out))
        print(f"{sizes[0]} -> {sizes[1]} bytes")
        return replace(report, looked_at=_looked_at(cases), bytes=sizes)

    def _for_cpu(
        self, whole: Path, shaped: Path | None, fused: Path, out: Path, *, checkpoint: Path | None, samples: Path | None
    ) -> QuantizeReport:
        """Quantize the graph of a folder of the model `whole`, whose names are in the same folder of `shaped`."""
        kept = self.kept(None if shaped is None else shaped / fused.relative_to(whole), "fp32")
        try:
            precisions.refuse_quantized(onnx_files.load_graph(fused))
            with precisions.in_float32(fused, out.parent) as single:
                report = self._quantized(single, out, checkpoint, samples, kept)
        except LeftAloneError as reason:
            return _left_alone(fused, out, reason)
        return replace(report, bytes=(precisions.size(fused), precisions.size(out)))

    def _kept(
        self, report: QuantizeReport, fused: Path, out: Path, *, reference: Path | None, checkpoint: Path | None
    ) -> QuantizeReport:
        """Return the report; or, where the comparison refuses the int8 model in `out`, put the model in fp32 there."""
        if not self.falls_back or report.unquantized is not None or reference is None or checkpoint is None:
            return report
        compared = {"reference": reference, "checkpoint": checkpoint, "task": self.task, "opt": self.opt}
        reason = _fallback().shortcoming(out, **compared)
        if reason is None:
            return report
        shutil.rmtree(out)
        return _left_alone(fused, out, LeftAloneError(reason))

    def _quantized(
        self, fused: Path, out: Path, checkpoint: Path | None, samples: Path | None, kept: NamedLayers
    ) -> QuantizeReport:
        if self.way in _BITS:
            return _part(_WEIGHT_ONLY).quantize(fused, out, bits=_BITS[self.way], keep_in=kept)  # type: ignore[no-any-return]
        static_int8 = _part(_STATIC)
        if not static_int8.suits(fused, sampled=samples is not None):
            if samples is not None:
                print("the samples for calibration are not used: the graph takes no images and is not convolutional")
            dynamic_int8 = _part(_DYNAMIC)
            options = {"reduce_range": self.reduce_range, "opset": self.opset, "keep_in": kept}
            return dynamic_int8.quantize(fused, out, **options)  # type: ignore[no-any-return]
        cases = self.cases(fused, checkpoint, samples)
        inputs = [case.inputs for case in cases]
        report: StaticReport = static_int8.quantize(fused, out, inputs, reduce_range=self.reduce_range, keep_in=kept)
        return replace(report, looked_at=_looked_at(cases))

    def _lowered(
        self, fused: Path, cases: list[Case], way: Lower, shaped: Path | None, scratch: Path
    ) -> tuple[onnx.ModelProto, HalfReport | QdqReport]:
        """Return the model in the precision `way`, which is for GPUs, and a report on the conversion."""
        few = calibration.some(cases)
        in_fp32 = self.kept(shaped, "fp32")
        if way == "fp16" or way == "bf16":  # noqa: PLR1714  mypy narrows the type by this form only
            model = _part(_SIGNATURES).load_for_bf16(fused, self.opset) if way == "bf16" else ir_models.load(fused)
            passes = Pipeline(trials.apart(model, scratch / "apart"))
            report = _part(_HALF).lowered(passes, few, way, scratch, in_fp32, wide_sums=self.wide_sums)
            return ir_models.proto(passes.model), report
        precisions.refuse_quantized(onnx_files.load_graph(fused))
        inputs, above = [case.inputs for case in cases], self.kept(shaped, "fp32", "fp16")
        passes, quantized = _part(_QDQ).quantize(fused, inputs, way, scratch, above)
        print("the rest of the model in fp16")
        rest = _part(_HALF).lowered(passes, few, "fp16", scratch, in_fp32)
        return ir_models.proto(passes.model), replace(quantized, rest=rest)


def _part(part: str) -> Any:
    return importlib.import_module(f"{_ROOM}.{part}")


def _fallback() -> Any:
    return importlib.import_module(_FALLBACK)


def _takes_texts(recipe: Recipe) -> bool:
    """Whether the task of a recipe is one for texts; where it names no task, whether its samples are texts."""
    task = recipe.model.task
    if task is None:
        return str(recipe.validation.samples or "").endswith(".jsonl")
    return tasks.find(task).takes_only_texts


def _looked_at(cases: list[Case]) -> Inputs:
    return Inputs(inputs=len(cases), kinds=tuple(sorted({case.kind for case in cases})))


def _together(graphs: Mapping[str, QuantizeReport]) -> QuantizeReport:
    every = {
        name: report
        for name, report in graphs.items()
        if isinstance(report, DynamicReport | StaticReport | WeightOnlyReport)
    }
    return GraphsReport(graphs=every)


def _left_alone(fused: Path, out: Path, reason: LeftAloneError) -> DynamicReport:
    print(f"not quantized: {reason}")
    onnx_files.link(fused, out)
    size = precisions.size(fused)
    left = precisions.left(onnx_files.load_graph(fused))
    return DynamicReport(quantized={}, left=tuple(left), bytes=(size, size), unquantized=str(reason))
