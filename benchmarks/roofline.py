"""The least time that a CPU allows for an int8 model of texts, beside the time that the model takes."""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from timing import add_text_shapes, machine, median_of_calls, table, text_shape

from engine.runtimes.execution import Execution
from engine.runtimes.runner import Runner

SIDE = 1024
"""Rows and columns of the product with which the int8 multiplications per second are measured."""
SECONDS = 1.0
"""The time of each measurement; the median of its calls counts."""


def main() -> None:
    """Print the bounds by multiplications and by reading weights, and the measured time, for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, help="the artifact of openvino-build: model.xml, model.bin")
    add_text_shapes(parser)
    options = parser.parse_args()
    rows = []
    for threads in options.threads:
        fastest = multiplications_per_second(threads)
        execution = Execution(runtime="openvino", options={})
        runner = execution.by.runner(options.directory, execution, name="model", threads=threads)
        for shape in options.shapes:
            batch, tokens = text_shape(shape)
            rows.append([shape, str(threads), *bounded(runner, batch, tokens, fastest, threads)])
    header = ["batch x tokens", "threads", "multiplications", "weights", "by multiplications", "by reading weights"]
    print(table([*header, "measured", "of the larger bound"], rows))
    print(
        f"\nint8 products of {SIDE} x {SIDE} x {SIDE} by ONNX Runtime give the multiplications per second. {machine()}."
    )


def bounded(runner: Runner, batch: int, tokens: int, fastest: float, threads: int) -> list[str]:
    """Return the cells of a shape: what it computes and reads, both bounds, the measured time and its ratio."""
    inputs = drawn(runner, batch, tokens)
    count = sum(runner.work(inputs).values())
    weights = sum(runner.work(drawn(runner, 1, tokens)).values()) // tokens  # a byte for each multiplication of a token
    computing, reading = count / fastest, weights / bytes_per_second(weights, threads)
    measured = median_of_calls(runner.prepare(inputs), SECONDS)
    return [
        f"{count / 1e6:.0f} million",
        f"{weights / 1e6:.1f} MB",
        f"{computing * 1e3:.2f} ms",
        f"{reading * 1e3:.2f} ms",
        f"{measured * 1e3:.2f} ms",
        f"{measured / max(computing, reading):.1f} x",
    ]


def drawn(runner: Runner, batch: int, tokens: int) -> dict[str, np.ndarray]:
    """Return inputs of a shape: a mask of ones, and ids of common tokens."""
    ids = np.random.default_rng(0).integers(1000, 2000, (batch, tokens))
    return {name: np.ones_like(ids) if "mask" in name else ids * ("ids" in name and "type" not in name)
            for name in runner.inputs or {}}  # fmt: skip


def multiplications_per_second(threads: int) -> float:
    """Return the int8 multiplications per second of a large product, computed by ONNX Runtime."""
    values = [helper.make_tensor_value_info(name, kind, [SIDE, SIDE]) for name, kind in _TYPES.items()]
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    b = np.random.default_rng(0).integers(-127, 127, (SIDE, SIDE)).astype(np.int8)
    weight = helper.make_tensor("b", TensorProto.INT8, b.shape, b.tobytes(), raw=True)
    graph = helper.make_graph([node], "product", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    a = np.random.default_rng(1).integers(0, 255, (SIDE, SIDE)).astype(np.uint8)
    return SIDE**3 / median_of_calls(lambda: session.run(None, {"a": a}), SECONDS)


_TYPES = {"a": TensorProto.UINT8, "y": TensorProto.INT32}


def bytes_per_second(count: int, threads: int) -> float:
    """Return how fast threads read `count` bytes again and again, as the calls of a model read its weights."""
    parts = np.array_split(np.ones(count // 8, np.int64), threads)
    if threads == 1:
        return count / median_of_calls(parts[0].max, SECONDS)
    with ThreadPoolExecutor(threads) as pool:
        return count / median_of_calls(lambda: list(pool.map(np.max, parts)), SECONDS)


if __name__ == "__main__":
    main()
