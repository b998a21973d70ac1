"""Dynamic int8: a quantized model for ONNX Runtime's CPU kernels, saved with the optimization level for serving."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.accuracy import equivalence
from engine.kit.onnx import ir_models, mapped_weights, onnx_files, opsets
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization import precisions
from engine.kit.quantization.dynamic import activation_scaling, attention_parts, integer_layers, ort_quantizer
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import ActivationScaling, DynamicReport, Left
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import session_options

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_DISABLED_FUSIONS = ("SkipLayerNormFusion",)


def quantize(
    fused: Path, out: Path, *, reduce_range: bool, opset: int, keep_in: NamedLayers = NOTHING
) -> DynamicReport:
    """Quantize the model in the folder `fused`, write the quantized model to the folder `out`, and return a report.

    `reduce_range` limits weights to 7 bits. `opset` is the newest opset that the serving ONNX Runtime reads; the model
    is raised to it where that needs no conversion. Raises LeftAloneError where there is nothing to quantize, StepError
    where ONNX Runtime's quantizer fails. The nodes of `keep_in` stay in fp32.
    """
    with TemporaryDirectory(dir=out.parent) as folder, mapped_weights.spilling(Path(folder)):
        model, scaling, kept = _quantized(fused, Path(folder), keep_in, reduce_range=reduce_range, opset=opset)
        counted, left = ort_quantizer.counted(model), precisions.left(model)
        _save(model, out, Path(folder))
    sizes = precisions.finished(fused, out, counted, left)
    return DynamicReport(quantized=counted, left=tuple(left), kept=kept, evened=scaling, bytes=sizes)


def _quantized(
    fused: Path, scratch: Path, keep_in: NamedLayers, *, reduce_range: bool, opset: int
) -> tuple[onnx.ModelProto, ActivationScaling, tuple[Left, ...]]:
    print("folding constants")
    ort.optimize(fused, scratch / "folded", level="basic", disabled=("ConstantSharing",))
    model = precisions.raised(scratch / "folded", ort_quantizer.OLDEST_OPSET)
    if any(graph.sparse_initializer for graph in onnx_files.graphs(model.graph)):  # folding gives sparse tensors
        raise LeftAloneError("it stores weights as sparse tensors, which ONNX Runtime's quantizer cannot read")
    passes = Pipeline(_with_parts(ir_models.of(model), scratch, opset=opset))
    fit = ort_quantizer.prepare(passes)
    kept = keep_in.nodes(passes.model)
    left = keep_in.layers(passes.model)
    scaling, roundings = passes.run(activation_scaling.apply, fit - kept.keys(), scratch)
    print(f"quantizing weights to {7 if reduce_range else 8} bits, a scale per channel")
    products = {node.name for node in passes.model.graph if node.op_type == "MatMul"}
    own = [name for each in roundings for name in each.nodes if name in products]
    ort_quantizer.quantize(passes, reduce_range=reduce_range, without=own, kept=kept)
    passes.run(integer_layers.quantize, roundings, reduce_range=reduce_range)
    quantized = ir_models.proto(passes.model)
    if not ort_quantizer.counted(quantized):
        raise LeftAloneError(f"it has no {'other ' if left else ''}operator that dynamic quantization makes faster")
    return quantized, scaling, left


def _with_parts(model: ir.Model, scratch: Path, *, opset: int) -> ir.Model:
    """Return the model in the given opset where that needs no conversion, with each fused attention in parts."""
    raised = opsets.relabeled(model, opset)
    if opsets.under_both_names(raised.opset_imports)[""] < attention_parts.OPSET:
        return raised
    passes = Pipeline(raised.clone())
    count = passes.run(attention_parts.split)
    if not count:
        return raised
    for name, each in (("whole", raised), ("parts", passes.model)):
        ir_models.save(each, scratch / name)
    difference = equivalence.difference(scratch / "whole", scratch / "parts")
    if difference is not None:
        print(f"attention stays fused: {difference}")
        return raised
    print(f"{count} fused attentions in parts")
    return passes.model


def _save(model: onnx.ModelProto, out: Path, scratch: Path) -> None:
    """Write the model to `out`, with the optimization level that keeps the served model fast.

    ONNX Runtime fuses a residual addition with the normalization behind it, into a kernel that is slower on a CPU (see
    `Fuse.residual`). To keep residual additions apart from normalizations, a quantized transformer is optimized without
    their fusion, and the server optimizes the model at ONNX Runtime's level `basic` only. Convolutions need tensor
    layouts that ONNX Runtime chooses for the serving CPU, at its optimization level `all` only. A model with at least
    as many convolutions as normalizations is therefore saved without optimizations, and the server optimizes the model
    at the level `all`.
    """
    operators = [node.op_type for node in onnx_files.nodes(model)]
    if operators.count("LayerNormalization") <= operators.count("Conv"):
        onnx_files.save(model, out)
        return
    onnx_files.save(model, scratch / "quantized")
    ort.optimize(scratch / "quantized", scratch / "optimized", level="extended", disabled=_DISABLED_FUSIONS)
    onnx_files.save(onnx_files.load_mapped(scratch / "optimized"), out)
    session_options.save(out, level="basic", disabled=_DISABLED_FUSIONS)
