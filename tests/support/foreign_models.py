"""Small ONNX models whose inputs are like those of other people's files, one model for each cause of a dead end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import graphs
import numpy as np
from graphs import FLOAT, INT64
from onnx import helper, numpy_helper, save


def nameless() -> Any:
    """Return a model of images like PP-OCR's classifier: a batch of the size -1, and two axes of the name `?`."""
    nodes = [
        helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["y"]),
    ]
    model = graphs.graph(nodes, [("x", FLOAT, [None, 3, "?", "?"])], [("y", FLOAT, [None, 3])])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    return model


def fixed() -> Any:
    """Return a model whose only input has a fixed shape."""
    shape = [1, 3, 8, 8]
    return graphs.graph([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, shape)], [("y", FLOAT, shape)])


def sums() -> Any:
    """Return a model like a decoder with a past, whose mask has one element more than the past."""
    nodes = [
        helper.make_node("Concat", ["past", "x"], ["both"], axis=1),
        helper.make_node("Cast", ["mask"], ["visible"], to=FLOAT),
        helper.make_node("Unsqueeze", ["visible", "last"], ["column"]),
        helper.make_node("Mul", ["both", "column"], ["present"]),
    ]
    inputs = [
        ("x", FLOAT, ["batch", 1, 4]),
        ("mask", INT64, ["batch", "past_sequence_length + 1"]),
        ("past", FLOAT, ["batch", "past_sequence_length", 4]),
    ]
    last = numpy_helper.from_array(np.array([2]), "last")
    outputs = [("present", FLOAT, ["batch", "past_sequence_length + 1", 4])]
    return graphs.graph(nodes, inputs, outputs, [last])


def one_height() -> Any:
    """Return a model of text lines like PP-OCR's recognizer: images have one height, which its input leaves open."""
    lines = numpy_helper.from_array(np.random.default_rng(0).random((1, 3, 48, 1)).astype(np.float32), "lines")
    nodes = [
        helper.make_node("Concat", ["x", "x"], ["wide"], axis=3),
        helper.make_node("Split", ["wide", "halves"], ["upper", "lower"], axis=2),
        helper.make_node("Concat", ["upper", "lower"], ["again"], axis=2),
        helper.make_node("Add", ["again", "lines"], ["y"]),
    ]
    halves = numpy_helper.from_array(np.array([24, 24]), "halves")
    inputs = [("x", FLOAT, ["p2o.DynamicDimension.0", 3, "?", "p2o.DynamicDimension.1"])]
    return graphs.graph(nodes, inputs, [("y", FLOAT, None)], [lines, halves])


def speech() -> Any:
    """Return a model like silero-vad: a rate that is a single number, a state, a branch for each rate, several outputs.

    The model runs with at least 64 samples, and with one batch for the waves and the states.
    """
    window = numpy_helper.from_array(np.random.default_rng(0).random((1, 1, 64)).astype(np.float32), "window")
    one, rate = numpy_helper.from_array(np.array([1]), "one"), numpy_helper.from_array(np.array(16000), "rate")

    def branch(name: str, operator: str) -> Any:
        value = helper.make_tensor_value_info(name, FLOAT, None)
        return helper.make_graph([helper.make_node(operator, ["framed"], [name])], name, [], [value])

    nodes = [
        helper.make_node("Equal", ["sr", "rate"], ["fast"]),
        helper.make_node("Unsqueeze", ["input", "one"], ["wave"]),
        helper.make_node("Conv", ["wave", "window"], ["framed"], strides=[32]),
        helper.make_node("If", ["fast"], ["sounds"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Tanh")),
        helper.make_node("ReduceMean", ["sounds"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("Transpose", ["state"], ["rows"], perm=[1, 0, 2]),
        helper.make_node("Flatten", ["rows"], ["flat"]),
        helper.make_node("Concat", ["mean", "flat"], ["output"], axis=1),
        helper.make_node("Tanh", ["state"], ["stateN"]),
    ]
    inputs = [("input", FLOAT, [None, None]), ("state", FLOAT, [2, None, 4]), ("sr", INT64, [])]
    outputs = [("output", FLOAT, [None, 9]), ("stateN", FLOAT, [None, None, None])]
    return graphs.graph(nodes, inputs, outputs, [window, one, rate], opset=16)


def odd_names() -> Any:
    """Return a model whose axes have names that a YAML file needs quotation marks for."""
    shape = ["batch size", 3, "no", "floor(height/2)"]
    return graphs.graph([helper.make_node("Relu", ["x:0"], ["y"])], [("x:0", FLOAT, shape)], [("y", FLOAT, shape)])


def lengths() -> Any:
    """Return a model with an input of one axis beside an input of two axes."""
    nodes = [
        helper.make_node("Unsqueeze", ["lengths", "last"], ["column"]),
        helper.make_node("Mul", ["x", "column"], ["y"]),
    ]
    last = numpy_helper.from_array(np.array([1]), "last")
    inputs = [("x", INT64, ["rows", "time"]), ("lengths", INT64, ["rows"])]
    return graphs.graph(nodes, inputs, [("y", INT64, ["rows", "time"])], [last])


def far_tokens() -> Any:
    """Return a model whose numbers are rows of a table only after a subtraction, which random numbers do not suit."""
    table = numpy_helper.from_array(np.ones((3, 2), np.float32), "table")
    first = numpy_helper.from_array(np.array(90), "first")
    nodes = [helper.make_node("Sub", ["x", "first"], ["row"]), helper.make_node("Gather", ["table", "row"], ["y"])]
    return graphs.graph(nodes, [("x", INT64, ["n"])], [("y", FLOAT, ["n", 2])], [table, first])


MODELS: Mapping[str, Callable[[], Any]] = {
    "nameless": nameless,
    "fixed": fixed,
    "sums": sums,
    "one-height": one_height,
    "speech": speech,
    "odd-names": odd_names,
    "lengths": lengths,
    "far-tokens": far_tokens,
}


def write(name: str, folder: Path) -> Path:
    """Write one of the models into a folder, and return its path."""
    path = folder / f"{name}.onnx"
    save(MODELS[name](), path)
    return path
