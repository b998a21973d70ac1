"""Embedding: the one vector of a sentence made at the end of the graph, where no server need carry the states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import sentences
from engine.kit.checkpoints.sentences import Sentences
from engine.kit.onnx import onnx_files, opsets

if TYPE_CHECKING:
    import onnx

NAME = "sentence_embedding"
"""The output, [batch, hidden], float32, as sentence-transformers calls it."""
STATES, MASK = "last_hidden_state", "attention_mask"
_OPSET = 18
"""From here on every reduction takes its axes as an input."""
_RANK = 3


def pooled(model: Path, checkpoint: Path, out: Path) -> Path:
    """Return a folder of the model that also gives the vector, made in `out`; the model's own where it cannot.

    The mean or the first token, and the length of 1, as the checkpoint's own sentence-transformers modules say
    (`sentences.load`); what else they may ask for is the work of the python backend (`served/embed.py`).
    """
    graph = onnx_files.load_graph(model)
    asked = _asked(checkpoint)
    if asked is None or not _suits(graph):
        return model
    _append(graph, asked)
    onnx_files.save_graph(graph, out)
    for path in model.iterdir():
        if path.name != onnx_files.MODEL:
            onnx_files.link_file(path, out / path.name)
    return out


def _asked(checkpoint: Path) -> Sentences | None:
    try:
        found = sentences.load(checkpoint)
    except sentences.UnsupportedModules:
        return None  # whoever makes answers says why
    return found if found is not None and found.modes in (("mean",), ("cls",)) else None


def _suits(graph: onnx.ModelProto) -> bool:
    given, taken = onnx_files.outputs(graph), onnx_files.inputs(graph)
    if NAME in given or STATES not in given or MASK not in taken or opsets.version(graph) < _OPSET:
        return False
    return (given[STATES].dtype, len(given[STATES].shape)) == ("float32", _RANK)


def _append(model: onnx.ModelProto, asked: Sentences) -> None:
    """Add the nodes; divisors are kept from zero as `Pooling` and torch's `normalize` keep them."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    constants = {
        "tokens": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
        "least_count": np.array(1e-9, np.float32),
        "least_length": np.array(1e-12, np.float32),
    }
    vector = NAME if not asked.normalize else _own("vector")
    if asked.modes == ("mean",):
        nodes = [
            helper.make_node("Cast", [MASK], [_own("counts")], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", [_own("counts"), _own("last")], [_own("weights")]),
            helper.make_node("Mul", [STATES, _own("weights")], [_own("weighed")]),
            helper.make_node("ReduceSum", [_own("weighed"), _own("tokens")], [_own("sum")], keepdims=0),
            helper.make_node("ReduceSum", [_own("weights"), _own("tokens")], [_own("count")], keepdims=0),
            helper.make_node("Max", [_own("count"), _own("least_count")], [_own("divisor")]),
            helper.make_node("Div", [_own("sum"), _own("divisor")], [vector]),
        ]
    else:  # the first token that counts, wherever padding stands
        nodes = [
            helper.make_node("Cast", [MASK], [_own("counts")], to=TensorProto.INT64),
            helper.make_node("ArgMax", [_own("counts")], [_own("first")], axis=1, keepdims=1),
            helper.make_node("GatherND", [STATES, _own("first")], [vector], batch_dims=1),
        ]
    if asked.normalize:
        nodes += [
            helper.make_node("ReduceL2", [vector, _own("last")], [_own("length")], keepdims=1),
            helper.make_node("Max", [_own("length"), _own("least_length")], [_own("least")]),
            helper.make_node("Div", [vector, _own("least")], [NAME]),
        ]
    used = {name for node in nodes for name in node.input}
    for name, value in constants.items():
        if _own(name) in used:
            graph.initializer.append(numpy_helper.from_array(value, _own(name)))
    for node in nodes:
        node.name = node.output[0]
    graph.node.extend(nodes)
    batch, _, hidden = onnx_files.outputs(model)[STATES].shape
    graph.output.append(helper.make_tensor_value_info(NAME, TensorProto.FLOAT, [batch, hidden]))


def _own(name: str) -> str:
    """Return a name that no exporter gives."""
    return f"{NAME}/{name}"
