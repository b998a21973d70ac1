"""Weight-only quantization: a model whose weights are stored in 4 or 8 bits, for ONNX Runtime's CPU kernels."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from engine.kit.onnx import ir_models, mapped_weights, names, onnx_files
from engine.kit.onnx.passes import linear_layers
from engine.kit.onnx.passes.pipeline import Pipeline
from engine.kit.quantization import int8, precisions
from engine.kit.quantization.keep_in import NOTHING, NamedLayers
from engine.kit.quantization.precisions import LeftAloneError
from engine.kit.quantization.report import WeightOnlyReport
from engine.kit.quantization.weight_only import blocks, operators
from engine.runtimes.onnxruntime import session as ort
from engine.text import lists


def quantize(fused: Path, out: Path, *, bits: int, keep_in: NamedLayers = NOTHING) -> WeightOnlyReport:
    """Write the model in the folder `fused` with weights of `bits` bits to the folder `out`, and return a report.

    The nodes of `keep_in` stay in fp32.
    Raises LeftAloneError where no layer has a weight that can be stored in blocks.
    """
    graph = onnx_files.load_graph(fused)
    precisions.refuse_quantized(graph)
    with TemporaryDirectory(dir=out.parent) as folder, mapped_weights.spilling(Path(folder)):
        passes = Pipeline(ir_models.load(fused))
        passes.run(linear_layers.split)
        passes.run(names.name_nodes)
        print(f"rounding weights to {bits} bits, a scale for each block of {blocks.BLOCK}")
        kept = keep_in.layers(passes.model)
        replaced = passes.run(operators.replace, bits, keep_in.nodes(passes.model))
        if not replaced.get("MatMul"):
            raise LeftAloneError(f"it has no {'other ' if kept else ''}linear layer with stored weights in float32")
        model = ir_models.proto(passes.model)
        left = int8.left(model)
        onnx_files.save(model, out)
    sizes = (precisions.size(fused), precisions.size(out))
    print(f"quantized {lists.counts(replaced)}: {sizes[0]} -> {sizes[1]} bytes")
    if left:
        print(f"left as they are: {', '.join(left)}")
    ort.session(out, threads=1, prepack=False)  # a model that cannot be opened must not leave this step
    return WeightOnlyReport(weights=f"int{bits}", quantized=replaced, left=tuple(left), kept=kept, bytes=sizes)
