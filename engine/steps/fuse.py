"""Fuse: nodes of a transformer are fused into operators that ONNX Runtime has fast kernels for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, Self

from engine.kit.accuracy import equivalence
from engine.kit.onnx import graphs, ir_models, onnx_files, widening
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.onnx.passes import attention_bias
from engine.kit.quantization import precisions
from engine.runtimes.onnxruntime import fusion, session_options
from engine.runtimes.preparation import Lowering, Residual
from engine.step import Step, TypedReport
from engine.text import lists, reasons

if TYPE_CHECKING:
    import onnx

    from engine.recipe.schema import Recipe

_MULTIPLICATIONS = {"MatMul", "Einsum"}
"""The operators with which attention multiplies two computed tensors.

A Gemm multiplies by a stored weight instead of a computed tensor.
"""
_NORMALIZATIONS = {"Softmax", "LayerNormalization", "ReduceMean"}
"""Operators that normalize; every transformer has at least one of them. The model T5 normalizes by ReduceMean."""


@dataclass(frozen=True, kw_only=True)
class FuseReport(TypedReport):
    """The fused operators of a graph; for a model of several graphs, a report for each graph."""

    fused: Mapping[str, int] | None = None
    """The number of fused operators by name."""
    nodes: tuple[int, int] | None = None
    """The number of nodes before and after the fusion."""
    biased: int | None = None
    """The number of fused attentions that add a bias in place of a mask; None where the step looked for none."""
    unfused: str | None = None
    """The reason why the graph was left unchanged; None where operators were fused."""
    graphs: Mapping[str, FuseReport] = field(default_factory=dict)


class Fuse(Step):
    """Fuse the operators of a transformer; a model that is no transformer is left unchanged.

    A fused model is compared with the original on random inputs, and left unchanged where the outputs differ. ONNX
    Runtime's optimizer matches patterns of nodes, and a wrong match would give wrong outputs.
    """

    makes: ClassVar[str] = "fused"
    carries_model: ClassVar[bool] = True
    tools: ClassVar[tuple[str, ...]] = (*ir_models.TOOLS, "onnxruntime")
    report: ClassVar[type[TypedReport] | None] = FuseReport
    keyed_if_set: ClassVar[tuple[str, ...]] = ("attention_bias",)

    residual: Residual = Residual.APART
    """Whether each residual addition is fused with the normalization that follows the addition.

    The runtime decides in `Runtime.fuses` whether residual additions are fused. The runtime's decision does not depend
    on timings during a build, because the same inputs must give the same bytes, however busy the machine is.
    """
    attention_bias: bool = False
    """Whether fused attention adds a bias in place of a raw mask. The runtime decides in `Runtime.biases_attention`."""

    @classmethod
    def for_recipe(cls, recipe: Recipe) -> Self | None:
        """Return the step for a runtime with kernels for fused operators; None for another runtime.

        Weights of fused attention and fused embeddings cannot be stored in blocks, so a model that is quantized by its
        weights alone is not fused.
        """
        runtime = recipe.runtime
        fuses = runtime.fuses(recipe.target)
        if fuses is None or runtime.lowering(recipe) is Lowering.WEIGHTS_ONLY:
            return None
        return cls(residual=fuses, attention_bias=runtime.biases_attention(recipe))

    def run(self, out: Path, *, shaped: Path) -> FuseReport:
        """Write the fused graph into `out`; report the fused operators, or the reason why the graph is unchanged."""
        return graphs.each(self._each, shaped, out, together=lambda every: FuseReport(graphs=every))

    def _each(self, shaped: Path, out: Path) -> FuseReport:
        original = onnx_files.load_mapped(shaped)
        before = _count(original)
        with TemporaryDirectory(dir=out.parent) as folder:
            try:
                changed, fused, biased = self._fused(shaped, original, Path(folder))
            except _NotFusedError as reason:
                print(f"not fused: {reason}")
                onnx_files.link(shaped, out)
                return FuseReport(fused={}, nodes=(before, before), unfused=str(reason))
            onnx_files.link(changed, out)
            after = _count(onnx_files.load_graph(changed))
        print(f"fused {lists.counts(fused)}: {before} -> {after} nodes")
        return FuseReport(fused=fused, nodes=(before, after), biased=biased)

    def _fused(self, shaped: Path, original: onnx.ModelProto, scratch: Path) -> tuple[Path, dict[str, int], int | None]:
        """Return the directory of the fused model, its fused operators, and how many attentions add a bias.

        Raises _NotFusedError.
        """
        _look_for_a_transformer(original)
        print("looking for attention, embedding and activation patterns")
        try:
            model = fusion.fuse(shaped, scratch / "folded", skip_layer_norm=self.residual is Residual.FUSED)
        except Exception as error:  # AssertionError, IndexError and others
            raise _NotFusedError(
                f"ONNX Runtime's optimizer gave up on this graph: {reasons.first_line(error)}"
            ) from error
        fused = fusion.fused_operators(original, model)
        if not fused:
            raise _NotFusedError("nothing to fuse: no pattern of ONNX Runtime's optimizer occurs in this graph")
        attempts: dict[Path, int | None] = {scratch / "fused": 0 if self.attention_bias else None}
        onnx_files.save(model, scratch / "fused")
        if self.attention_bias and (biased := _biased(scratch / "fused", scratch / "biased")):
            attempts = {scratch / "biased": biased, **attempts}
        for changed, biased_attentions in attempts.items():
            if "Attention" in fused and self.residual is Residual.APART:
                # Higher levels would fuse the residual additions again, and find little else to fuse.
                session_options.save(changed, level="basic")
            print("comparing the fused model with the original, also with padding and holes in masks")
            difference = equivalence.difference(shaped, changed)
            if difference is None:
                return changed, fused, biased_attentions
            print(f"not the same{' with a bias in place of the mask' if biased_attentions else ''}: {difference}")
        raise _NotFusedError(f"the fused model is not the same as the original: {difference}")


class _NotFusedError(Exception):
    """The error that says why the step `fuse` leaves a model unchanged."""


def _look_for_a_transformer(model: onnx.ModelProto) -> None:
    """Raise _NotFusedError for a model that is no transformer, has a past, or is in a lower precision already."""
    if graphs.has_past(model):
        raise _NotFusedError("it has a past, which the patterns of ONNX Runtime's optimizer do not know")
    operators = {node.op_type for node in onnx_files.nodes(model)}
    if operators.isdisjoint(_MULTIPLICATIONS) or operators.isdisjoint(_NORMALIZATIONS):
        raise _NotFusedError("nothing to fuse: this is no transformer")
    signs = precisions.signs(model)
    if signs:
        # Folding constants would turn quantized weights back to floating point.
        raise _NotFusedError(f"it is quantized already ({', '.join(signs)}), and stays as its maker left it")
    if widening.has_half(model):
        # Folding half-precision constants on a CPU would add casts to the whole graph.
        raise _NotFusedError("it is in half precision already, which this step would take apart")


def _biased(fused: Path, out: Path) -> int:
    """Write the fused model to `out` with biases in place of masks, and return how many attentions read one."""
    passes = Pipeline(ir_models.load(fused))
    biased = passes.run(attention_bias.from_masks)
    ir_models.save(passes.model, out)
    return biased


def _count(model: onnx.ModelProto) -> int:
    return sum(1 for _ in onnx_files.nodes(model))
