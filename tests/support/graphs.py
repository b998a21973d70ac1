"""Makers of small ONNX graphs: by hand, as other people's tools write them, and exported from tiny checkpoints."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import once
import onnx
from onnx import TensorProto, helper, numpy_helper

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.surgery import name_nodes
from engine.kit.quantization.half import half, ranges

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
INT8_RECIPE = """\
name: net
model: {source: net.onnx}
precision: int8
profiles: [{batch: [1, 2, 4]}]
validate: {cosine: 0.5, agreement: 0.1, max_abs: 100}
bench: {shapes: [{batch: 2}]}
"""
"""The text of a recipe for the graph of `layers`, saved as `net.onnx` beside the recipe."""


def weight(name: str, *shape: int, seed: int = 0) -> onnx.TensorProto:
    """Return a stored tensor of normally distributed numbers."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], weights: list[Any] = (), **options: Any) -> Any:
    """Return a model; `inputs` and `outputs` are (name, type, shape), `opset` and `domains` are options."""
    body = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        list(weights),
    )
    opsets = [helper.make_opsetid("", options.get("opset", 17))]
    opsets += [helper.make_opsetid(domain, 1) for domain in options.get("domains", ())]
    return helper.make_model(body, opset_imports=opsets, ir_version=options.get("ir", 8))


def parsed(text: str, *, opset: int = 17, ir: int = 8, domains: tuple[str, ...] = (), **weights: Any) -> Any:
    """Return the model of a graph in onnx's own text, such as `(float[n] x) => (float[n] y) { y = Add(x, w) }`.

    A weight is an array, a stored tensor, or the shape of a tensor of normally distributed numbers, as a tuple.
    """
    imports = ", ".join(
        f'"{domain}" : {version}' for domain, version in {"": opset, **dict.fromkeys(domains, 1)}.items()
    )
    model = onnx.parser.parse_model(f"<ir_version: {ir}, opset_import: [{imports}]> graph {text}")
    for name, values in weights.items():
        if isinstance(values, tuple):
            stored = weight(name, *values)
        else:
            stored = values if isinstance(values, TensorProto) else numpy_helper.from_array(np.asarray(values), name)
        model.graph.initializer.append(stored)
    return model


def write(directory: Path, model: onnx.ModelProto) -> Path:
    """Write a model as its maker would: with onnx itself."""
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save(model, directory / "model.onnx")
    return directory


def whole(model: onnx.ModelProto, directory: Path) -> onnx.ModelProto:
    """Return a model with its mapped weights in memory, as it is when it was saved and loaded."""
    onnx_files.save(onnx_files.copied(model), directory)
    return onnx_files.load(directory)


def changed(model: onnx.ModelProto, change: Any, *args: Any, **options: Any) -> Any:
    """Let a pass change a message, and return what the pass returns."""
    graph = ir_models.of(onnx_files.copied(model))
    result = change(graph, *args, **options)
    model.CopyFrom(ir_models.proto(graph))
    return result


def in_half(source: Path, out: Path) -> None:
    """Write a model with every node in fp16 that has a form in fp16, whatever its values are."""
    model = ir_models.load(source)
    name_nodes(model)
    half.convert(model, {node.name for node in model.graph}, ranges.tensor_types(model, out.parent), "fp16")
    ir_models.save(model, out)


def layers(features: int = 64, hidden: int = 128) -> onnx.ModelProto:
    """Return two linear layers with a Relu between them: x [batch, features] -> y [batch, 4]."""
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["a"]),
        helper.make_node("Add", ["a", "bias"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Gemm", ["c", "second"], ["y"], transB=1),
    ]
    weights = [weight("first", features, hidden), weight("bias", hidden), weight("second", 4, hidden, seed=1)]
    return graph(nodes, [("x", FLOAT, ["batch", features])], [("y", FLOAT, ["batch", "classes"])], weights)


def residual(dtype: str = "float32") -> onnx.ModelProto:
    """Return a residual addition fused with its normalization, and a product, whose weights have the type `dtype`."""
    nodes = [
        helper.make_node("SkipLayerNormalization", ["x", "skip", "scale", "shift"], ["a"], domain="com.microsoft"),
        helper.make_node("MatMul", ["a", "w"], ["y"]),
    ]
    shapes = {"scale": (64,), "shift": (64,), "w": (64, 64)}
    generator = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(dtype), name) for name, shape in shapes.items()
    ]
    tensors = [(name, weights[0].data_type, ["batch", "sequence", 64]) for name in ("x", "skip", "y")]
    return graph(nodes, tensors[:2], tensors[2:], weights, opset=20, domains=["com.microsoft"])


def convolutions(channels: int = 8) -> onnx.ModelProto:
    """Return a vision model: images [batch, 3, 16, 16] -> y [batch, 5]."""
    nodes = [
        helper.make_node("Conv", ["images", "kernel"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "kernel2"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "head"], ["y"]),
    ]
    weights = [
        weight("kernel", channels, 3, 3, 3),
        weight("kernel2", channels, channels, 3, 3, seed=1),
        weight("head", channels, 5, seed=2),
    ]
    return graph(nodes, [("images", FLOAT, ["batch", 3, 16, 16])], [("y", FLOAT, ["batch", 5])], weights)


def recurrent(*, shared: bool = False) -> onnx.ModelProto:
    """Return one LSTM after another: x [time, batch, 32] -> y [time, batch, 32]."""
    second = ("w1", "r1") if shared else ("w2", "r2")
    nodes = [
        helper.make_node("LSTM", ["x", "w1", "r1"], ["a"], hidden_size=32),
        helper.make_node("Squeeze", ["a", "axis"], ["b"]),
        helper.make_node("LSTM", ["b", *second], ["c"], hidden_size=32),
        helper.make_node("Squeeze", ["c", "axis"], ["y"]),
    ]
    weights = [
        weight(name, 1, 128, 32, seed=seed) for seed, name in enumerate(("w1", "r1", *(() if shared else second)))
    ]
    weights.append(numpy_helper.from_array(np.array([1]), "axis"))
    shape = ["time", "batch", 32]
    return graph(nodes, [("x", FLOAT, shape)], [("y", FLOAT, shape)], weights)


def loop() -> onnx.ModelProto:
    """Return a Loop whose body multiplies by a weight of the outer graph: x [batch, 8] -> y, `times` times."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w"], ["next"]), helper.make_node("Identity", ["go"], ["still"])],
        "body",
        [
            helper.make_tensor_value_info("index", INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", FLOAT, ["batch", 8]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", FLOAT, ["batch", 8]),
        ],
    )
    node = helper.make_node("Loop", ["times", "", "x"], ["y"], body=body)
    inputs = [("x", FLOAT, ["batch", 8]), ("times", INT64, [])]
    return graph([node], inputs, [("y", FLOAT, ["batch", 8])], [weight("w", 8, 8)])


def choice() -> onnx.ModelProto:
    """Return an If with another weight in each branch: x [batch, 8], which [] -> y [batch, 8]."""
    branches = {}
    for number, name in enumerate(("then_branch", "else_branch")):
        output = helper.make_tensor_value_info(f"{name}_y", FLOAT, ["batch", 8])
        node = helper.make_node("MatMul", ["x", f"{name}_w"], [f"{name}_y"])
        branches[name] = helper.make_graph([node], name, [], [output], [weight(f"{name}_w", 8, 8, seed=number)])
    node = helper.make_node("If", ["which"], ["y"], **branches)
    inputs = [("x", FLOAT, ["batch", 8]), ("which", TensorProto.BOOL, [])]
    return graph([node], inputs, [("y", FLOAT, ["batch", 8])])


@cache
def tiny(architecture: str, task: str = "text-classification") -> Path:
    """Return the directory of an exported random checkpoint, made once in a run of the tests."""

    def export(folder: Path) -> None:
        import models

        from engine.steps.export import Export

        source = models.checkpoint(folder / "checkpoint", architecture, task=task)
        Export(task=task).run(folder / "exported", checkpoint=source)

    return once.made(f"tiny-{architecture}-{task}", export) / "exported"
