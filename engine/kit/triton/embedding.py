"""Embedding: nodes at the end of a graph that make one vector of a sentence's hidden states."""

# Where the graph makes the vector, the server does not pass the hidden states of all tokens to a python model. Engines
# are built from such graphs; ONNX files get the nodes in the package.

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.kit.checkpoints import sentences
from engine.kit.checkpoints.sentences import NORMALIZE, Sentences
from engine.kit.onnx import onnx_files, opsets

if TYPE_CHECKING:
    import onnx

NAME = "sentence_embedding"
"""The name that sentence-transformers gives to the embedding: an output [batch, hidden], float32."""
STATES, MASK = "last_hidden_state", "attention_mask"
_OPSET = 18
"""From this opset on, every reduction operator of ONNX takes its axes as an input, not as an attribute."""
_RANK = 3
"""The axes of the hidden states: batch, tokens, hidden."""


def pooled(model: Path, checkpoint: Path, out: Path, *, with_states: bool = True) -> Path:
    """Write into `out` the model with the sentence embedding as a further output, and return `out`.

    Without `with_states` the embedding takes the place of the hidden states among the outputs: a server then need not
    write the states of all tokens to memory for each request.

    The embedding is the mean of all tokens' hidden states, or the hidden state of the first token. The embedding is
    scaled to length 1 where the sentence-transformers modules of the checkpoint say so (`sentences.load`). For a
    pooling other than `mean` and `cls`, for further modules, and for a graph without hidden states, `out` is not
    written and `model` is returned: Triton's python backend then computes the embedding (`served/embed.py`).
    """
    graph = onnx_files.load_graph(model)
    modules = _modules(checkpoint)
    if modules is None or not _suits(graph):
        return model
    _append(graph, modules)
    if not with_states:
        graph.graph.output.remove(next(output for output in graph.graph.output if output.name == STATES))
    onnx_files.save(graph, out)
    for path in model.iterdir():
        if path.name != onnx_files.MODEL:
            onnx_files.link_file(path, out / path.name)
    return out


def _modules(checkpoint: Path) -> Sentences | None:
    """Return how a checkpoint pools hidden states; None where a graph gets no nodes for it."""
    modules = sentences.load(checkpoint)
    if modules is None or modules.modes not in (("mean",), ("cls",)) or modules.layers not in ((), (NORMALIZE,)):
        return None
    return None if modules.truncate_dim is not None or modules.skips_prompt else modules


def _suits(graph: onnx.ModelProto) -> bool:
    """Tell whether a graph has float32 hidden states and an attention mask, and no sentence embedding yet."""
    outputs, inputs = onnx_files.outputs(graph), onnx_files.inputs(graph)
    if NAME in outputs or STATES not in outputs or MASK not in inputs or opsets.version(graph) < _OPSET:
        return False
    return (outputs[STATES].dtype, len(outputs[STATES].shape)) == ("float32", _RANK)


def _append(model: onnx.ModelProto, modules: Sentences) -> None:
    """Add to a graph the nodes that compute the sentence embedding.

    The smallest allowed divisors, 1e-9 and 1e-12, are taken from `Pooling` of sentence-transformers and from
    `normalize` of torch.
    """
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    constants = {
        "tokens": np.array([1], np.int64),
        "last": np.array([-1], np.int64),
        "least_count": np.array(1e-9, np.float32),
        "least_length": np.array(1e-12, np.float32),
    }
    vector = NAME if not modules.layers else _own("vector")
    if modules.modes == ("mean",):
        nodes = [
            helper.make_node("Cast", [MASK], [_own("counts")], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", [_own("counts"), _own("last")], [_own("weights")]),
            helper.make_node("Mul", [STATES, _own("weights")], [_own("weighed")]),
            helper.make_node("ReduceSum", [_own("weighed"), _own("tokens")], [_own("sum")], keepdims=0),
            helper.make_node("ReduceSum", [_own("weights"), _own("tokens")], [_own("count")], keepdims=0),
            helper.make_node("Max", [_own("count"), _own("least_count")], [_own("divisor")]),
            helper.make_node("Div", [_own("sum"), _own("divisor")], [vector]),
        ]
    else:  # the first token behind the padding, since padding may stand on the left
        nodes = [
            helper.make_node("Cast", [MASK], [_own("counts")], to=TensorProto.FLOAT),  # TensorRT's ArgMax takes floats
            helper.make_node("ArgMax", [_own("counts")], [_own("first")], axis=1, keepdims=1),
            helper.make_node("GatherND", [STATES, _own("first")], [vector], batch_dims=1),
        ]
    if modules.layers:
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
    """Return the name of an added node's output; the prefix of the name is one that no exporter uses."""
    return f"{NAME}/{name}"
