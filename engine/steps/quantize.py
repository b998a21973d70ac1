"""Quantize: the precision of a recipe written into the ONNX graph, a way each in the kit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from engine.kit.checkpoints import checkpoint as checkpoints
from engine.kit.inputs.cases import Case
from engine.kit.onnx import graphs, onnx_files
from engine.kit.quantization import calibration, int8, precisions
from engine.kit.quantization.dynamic import dynamic_int8
from engine.kit.quantization.half import half_search
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.qdq import qdq
from engine.kit.quantization.report import (
    HALVES,
    DynamicReport,
    GraphsReport,
    HalfReport,
    Inputs,
    QdqReport,
    QuantizeReport,
)
from engine.recipe.schema import Profile
from engine.runtimes import registry
from engine.runtimes.preparation import Lowering
from engine.step import Section, Source, Step, TypedReport

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

Lower = Literal["fp16", "bf16", "int8", "fp8", "int4"]

_WITHOUT_VNNI = frozenset({"avx2", "avx512"})


class Quantize(Step):
    """Lower the precision of what bears it; leave the rest and say so.

    For a CPU that is dynamic int8, of tensors that are evened out first. For a GPU the graph says the precision of
    every tensor, as TensorRT 11 and TensorRT-RTX want it: fp16 or bf16; or int8, fp8 or int4 between Q/DQ pairs and
    the rest in fp16. Nothing here depends on which GPU it is for, or on what compiles it.
    """

    makes: ClassVar[str] = "quantized"
    report: ClassVar[type[TypedReport] | None] = QuantizeReport
    section: ClassVar[Section | None] = Section.PRECISION
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = ("numpy", "onnx", "onnxruntime")
    facts: ClassVar[tuple[str, ...]] = ("cpu.isa", "onnxruntime.build")
    """What chooses the kernels that inputs are run with, to see how large tensors become."""

    way: Literal["dynamic"] | Lower = "dynamic"
    reduce_range: bool = False
    """Whether weights of dynamic int8 keep to 7 bits.

    Without VNNI, x86 multiplies uint8 by int8 with VPMADDUBSW, whose 16-bit sums saturate; ONNX Runtime's guide
    "Quantize ONNX Models" advises this for AVX2 and AVX512 wherever weights are quantized per channel.
    """
    samples: Source | None = None
    """What may be looked at; without it fp16 and bf16 look at the cases of the reference."""
    own_texts: bool = False
    """Whether, without samples, texts of our own may be looked at: not where the model is validated on them."""
    limit: int | None = None
    profiles: tuple[Profile, ...] = ()
    """Within which random inputs are drawn."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step where the recipe's runtime takes its precision from the graph."""
        precision = recipe.precision
        lowering = registry.of(recipe).lowering(recipe)
        if lowering is Lowering.DYNAMIC:
            return cls(reduce_range=recipe.target.isa in _WITHOUT_VNNI)
        if lowering is None or precision == "fp32":
            return None
        asked = recipe.calibrate
        return cls(
            way=precision,
            samples=None if asked is None else Source(uri=asked.samples),
            limit=None if asked is None else asked.limit,
            own_texts=asked is None and precision not in HALVES and recipe.validation.samples is not None,
            profiles=recipe.profiles if asked is None and precision not in HALVES else (),
        )

    def tools_used(self) -> tuple[str, ...]:
        """Return what changes the graph, and what makes inputs of the samples."""
        return (*self.tools, "tokenizers") if self.samples is not None or self.own_texts else self.tools

    def inputs_used(self) -> tuple[str, ...]:
        """Return the model, and where inputs to look at come from."""
        if self.way == "dynamic":
            return ("fused",)
        return ("fused", "reference" if self.way in HALVES and self.samples is None else "checkpoint")

    def run(
        self,
        out: Path,
        *,
        fused: Path,
        reference: Path | None = None,
        checkpoint: Path | None = None,
        samples: Path | None = None,
    ) -> QuantizeReport:
        """Return what `dynamic_int8.quantize`, or `half_search.lowered` and `qdq.quantize`, tell, and the bytes.

        Where nothing was lowered, `unquantized` says why and the model is handed on as it came. Raises StepError
        where the samples do not suit the model, or a tool breaks down. Of several graphs there is a report for each.
        """
        if self.way == "dynamic":
            return graphs.each(self._dynamic, fused, out, together=_together)
        try:
            precisions.refuse_half(onnx_files.load_graph(fused))
            asked = self._asked(fused, reference, checkpoint, samples)
            with TemporaryDirectory(dir=out.parent) as folder:
                model, report = _lowered(fused, asked, self.way, Path(folder))
                onnx_files.save(model, out)
        except LeftAloneError as reason:
            return _left_alone(fused, out, reason)
        sizes = (precisions.size(fused), precisions.size(out))
        print(f"{sizes[0]} -> {sizes[1]} bytes")
        kinds = sorted({case.kind for case in asked})
        return replace(report, looked_at=Inputs(inputs=len(asked), kinds=tuple(kinds)), bytes=sizes)

    def _dynamic(self, fused: Path, out: Path) -> QuantizeReport:
        try:
            return dynamic_int8.quantize(fused, out, reduce_range=self.reduce_range)
        except LeftAloneError as reason:
            return _left_alone(fused, out, reason)

    def _asked(self, fused: Path, reference: Path | None, checkpoint: Path | None, samples: Path | None) -> list[Case]:
        """Return the inputs to look at, as cases."""
        graph = onnx_files.load_graph(fused)
        wanted = onnx_files.inputs(graph)
        if samples is not None and checkpoint is not None:
            return calibration.from_file(samples, checkpoint, wanted, limit=self.limit)
        if reference is not None:
            return calibration.from_reference(reference)
        texts = calibration.of_our_own(checkpoint, wanted) if checkpoint is not None and self.own_texts else []
        instead = "some texts of our own" if texts else "random inputs within the profiles"
        print(f"no samples to calibrate on (`calibrate` in the recipe): {instead} instead")
        longest = None if checkpoint is None else checkpoints.max_sequence(checkpoint)
        return texts or calibration.drawn(graph, self.profiles, longest=longest)


def _together(graphs: Mapping[str, QuantizeReport]) -> QuantizeReport:
    every = {name: report for name, report in graphs.items() if isinstance(report, DynamicReport)}
    return GraphsReport(graphs=every)


def _left_alone(fused: Path, out: Path, reason: LeftAloneError) -> DynamicReport:
    print(f"not quantized: {reason}")
    onnx_files.link(fused, out)
    size = precisions.size(fused)
    left = int8.left(onnx_files.load_graph(fused))
    return DynamicReport(quantized={}, left=tuple(left), bytes=(size, size), unquantized=str(reason))


def _lowered(
    fused: Path, asked: list[Case], way: Lower, scratch: Path
) -> tuple[onnx.ModelProto, HalfReport | QdqReport]:
    """Return the model in a precision for GPUs, and a report."""
    few = calibration.some(asked)
    if way == "fp16" or way == "bf16":  # noqa: PLR1714  of the two forms this one tells the type
        return half_search.lowered(onnx_files.load(fused), few, way, scratch)
    precisions.refuse_quantized(onnx_files.load_graph(fused))
    model, quantized = qdq.quantize(fused, [case.inputs for case in asked], way, scratch)
    print("all else in fp16")
    lowered, rest = half_search.lowered(model, few, "fp16", scratch)
    return lowered, replace(quantized, rest=rest)
