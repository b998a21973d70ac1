"""Dynamic int8: a model for ONNX Runtime's CPU, folded, quantized and saved so that serving undoes nothing."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.kit.onnx import onnx_files
from engine.kit.quantization import int8, precisions
from engine.kit.quantization.dynamic import evening
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import DynamicReport, Evened
from engine.runtimes.onnxruntime import session as ort

if TYPE_CHECKING:
    import onnx

_KEPT_APART = ("SkipLayerNormFusion",)
_FREE_INITIALIZERS = 4  # the IR version since which weights need not be inputs as well: folding leaves them out


def quantize(fused: Path, out: Path, *, reduce_range: bool) -> DynamicReport:
    """Write the quantized model, and return a report.

    `reduce_range` keeps weights to 7 bits. Raises LeftAloneError where nothing is to be quantized, StepError where
    the quantizer breaks down.
    """
    before = precisions.size(fused)
    with TemporaryDirectory(dir=out.parent) as folder:
        model, evened = _quantized(fused, Path(folder), reduce_range=reduce_range)
        counted, left = int8.counted(model), int8.left(model)
        _save(model, out, Path(folder))
    after = precisions.size(out)
    print(f"quantized {', '.join(f'{count} {name}' for name, count in counted.items())}: {before} -> {after} bytes")
    if left:
        print(f"left as they are: {', '.join(left)}")
    ort.session(out, threads=1)  # a model that cannot be opened must not leave this step
    return DynamicReport(quantized=counted, left=tuple(left), evened=evened, bytes=(before, after))


def _quantized(fused: Path, scratch: Path, *, reduce_range: bool) -> tuple[onnx.ModelProto, Evened]:
    graph = onnx_files.load_graph(fused)
    precisions.refuse_quantized(graph)
    precisions.refuse_half(graph)
    print("folding constants")
    ort.optimize(fused, scratch / "folded", level="basic", disabled=("ConstantSharing",))
    model = _recent(onnx_files.load(scratch / "folded"))
    if any(graph.sparse_initializer for graph in onnx_files.graphs(model.graph)):  # folding makes constants such
        raise LeftAloneError("it stores weights as sparse tensors, which ONNX Runtime's quantizer cannot read")
    evened = evening.even(model, int8.prepare(model), scratch)
    print(f"quantizing weights to {7 if reduce_range else 8} bits, a scale per channel")
    quantized = int8.quantize(model, scratch, reduce_range=reduce_range)
    if not int8.counted(quantized):
        raise LeftAloneError("it has no operator that dynamic quantization makes faster")
    return quantized, evened


def _recent(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model in an opset that knows the quantizing operators."""
    from onnx import version_converter

    opset = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), 0)
    if opset >= int8.OLDEST_OPSET:
        return model
    model.ir_version = max(model.ir_version, _FREE_INITIALIZERS)
    try:
        return version_converter.convert_version(model, int8.OLDEST_OPSET)
    except Exception as error:  # the converter raises RuntimeError for operators that it has no adapter for
        reason = f"it is written in opset {opset}, too old for int8, and cannot be converted to {int8.OLDEST_OPSET}"
        raise LeftAloneError(f"{reason} ({error})") from error


def _save(model: onnx.ModelProto, out: Path, scratch: Path) -> None:
    """Write the model so that serving it does not undo what makes it fast.

    ONNX Runtime fuses a residual addition with the normalization behind it, into a kernel that is slower on a CPU
    (see `Fuse.residual`). So a transformer is optimized here, without that fusion, and served at the level `basic`.
    Convolutions want the layouts that only the level `all` gives, chosen by the CPU that serves them: models with
    more of these than normalizations are left to it.
    """
    operators = [node.op_type for node in onnx_files.nodes(model)]
    if operators.count("LayerNormalization") <= operators.count("Conv"):
        onnx_files.save(model, out)
        return
    onnx_files.save(model, scratch / "quantized")
    ort.optimize(scratch / "quantized", scratch / "optimized", level="extended", disabled=_KEPT_APART)
    onnx_files.save(onnx_files.load(scratch / "optimized"), out)
    ort.save_options(out, level="basic", disabled=_KEPT_APART)
