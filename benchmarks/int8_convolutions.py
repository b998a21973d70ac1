"""One convolution in int8 against fp32, by kind: which kinds static int8 makes faster, in CPU time of one thread."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import recipe_program as program
from onnx import helper, numpy_helper
from timing import machine, table

sys.path.append(str(program.ROOT))

from engine.kit.onnx import ir_models, onnx_files, surgery
from engine.kit.quantization.static import layers, static_nodes
from engine.kit.quantization.static.layers import StaticLayer
from engine.kit.quantization.static.ranges import ByteRange
from engine.runtimes.onnxruntime import session as ort

KINDS = {
    "dense 1x1": [
        (16, 96, 1, 1, 112), (16, 64, 1, 1, 56), (20, 64, 1, 1, 56), (24, 144, 1, 1, 56), (64, 64, 1, 1, 56),
        (128, 128, 1, 1, 28), (240, 40, 1, 1, 28), (256, 256, 1, 1, 14), (512, 512, 1, 1, 7),
    ],
    "dense 1x1 at one place": [(96, 24, 1, 1, 1), (1152, 48, 1, 1, 1)],
    "dense 3x3": [
        (3, 32, 3, 1, 224), (8, 32, 3, 1, 56), (16, 32, 3, 1, 112), (64, 64, 3, 1, 56), (128, 128, 3, 1, 28),
        (256, 256, 3, 1, 14), (512, 512, 3, 1, 7),
    ],
    "dense 7x7": [(3, 64, 7, 1, 224)],
    "grouped 3x3": [
        (64, 64, 3, 8, 28), (64, 64, 3, 4, 56), (80, 80, 3, 4, 28), (128, 128, 3, 4, 28), (256, 256, 3, 8, 14),
    ],
    "depthwise": [
        (32, 32, 3, 32, 56), (96, 96, 3, 96, 28), (256, 256, 3, 256, 14), (960, 960, 3, 960, 7), (256, 256, 5, 256, 14),
    ],
}  # fmt: skip
"""Each kind's layers: input channels, output channels, extent of the window, groups, extent of the image."""
ROUNDS = 9
SECONDS = 0.03
"""The CPU time that one measurement takes at least."""
OPSET = 17


def main() -> None:
    """Measure each layer in turns, and print the ratios beside the rule of the engine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kinds", nargs="*", default=list(KINDS))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.parse_args().kinds:
            for number, shape in enumerate(KINDS[kind]):
                rows.append([kind, *measured(Path(folder) / f"{kind} {number}", shape)])
    print(table(["kind", "inputs -> outputs", "groups", "image", "times faster in int8", "the engine"], rows))
    how = (
        f"CPU time of one thread, medians of {ROUNDS} ratios, in turns. Each layer stands between two operators in fp32"
    )
    print(f"\n{how}: the int8 time includes its quantization. {machine()}.")


def measured(folder: Path, shape: tuple[int, int, int, int, int]) -> list[str]:
    """Return the cells of one layer: how many times faster it is in int8, and what the engine does with it."""
    inputs, outputs, window, groups, extent = shape
    model = layer(inputs, outputs, window, groups, extent)
    onnx_files.save(model, folder / "fp32")
    graph = ir_models.load(folder / "fp32")
    node = next(each for each in graph.graph if each.op_type == layers.CONVOLUTION)
    work = outputs * extent * extent * (inputs // groups) * window * window
    chosen = bool(layers.find(graph, {node: work}).layers)
    every = ByteRange(np.float32(0.02), np.uint8(128))
    name = surgery.output_names(node)[0]
    quantized = StaticLayer(layers.CONVOLUTION, name, surgery.input_names(node)[0], name, has_bias=True, channels=0)
    static_nodes.insert(graph, [quantized], {quantized.source: every, quantized.output: every})
    onnx_files.save(ir_models.proto(graph), folder / "int8")
    image = {"x": np.random.default_rng(0).standard_normal((1, inputs, extent, extent)).astype(np.float32)}
    sessions = [ort.session(folder / each, threads=1) for each in ("fp32", "int8")]
    count = max(3, int(SECONDS / max(taken(sessions[0], image, 3), 1e-6)))
    ratios = [taken(sessions[0], image, count) / taken(sessions[1], image, count) for _ in range(ROUNDS)]
    decision = "int8" if chosen else "fp32"
    return [f"{inputs} -> {outputs}", str(groups), str(extent), f"{statistics.median(ratios):.2f} x", decision]


def taken(session: object, image: dict[str, np.ndarray], count: int) -> float:
    """Return the CPU time of one run, in seconds."""
    started = time.process_time()
    for _ in range(count):
        ort.run(session, image)  # type: ignore[arg-type]
    return (time.process_time() - started) / count


def layer(inputs: int, outputs: int, window: int, groups: int, extent: int) -> onnx.ModelProto:
    """Return a model with one convolution between two operators in floating point."""
    generator = np.random.default_rng(1)
    weight = generator.standard_normal((outputs, inputs // groups, window, window)).astype(np.float32)
    convolution = helper.make_node(
        "Conv", ["a", "weight", "bias"], ["b"], kernel_shape=[window] * 2, pads=[window // 2] * 4, group=groups
    )
    nodes = [helper.make_node("Relu", ["x"], ["a"]), convolution, helper.make_node("Sigmoid", ["b"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, inputs, extent, extent])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(np.zeros(outputs, np.float32), "bias")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


if __name__ == "__main__":
    main()
