"""Models of 24 products in which chosen layers cannot be in few bits: their weights have huge outliers.

Some features are always 0, and the outliers are the weights that read them: they change no answer of the model. But
the numbers that share a scale with an outlier are rounded to 0, per channel and in blocks of 32 inputs. A planted
layer loses half of its outputs so, and a cosine of about 0.3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path

import graphs
import models
import numpy as np
import onnx
from onnx import helper, numpy_helper

LAYERS = 24
WIDTH = 64
_DEAD = [0, 32]
"""One feature in each block of 32."""
_OUTLIER = 1e5


def name(layer: int) -> str:
    """Return the name of a layer for `keep_in`: the module that its node's name has."""
    return f"encoder.layer.{layer}.dense"


def model(planted: Collection[int]) -> onnx.ModelProto:
    """Return a chain of products by nearly orthogonal matrices, with outliers in the planted layers."""
    random = np.random.default_rng(0)
    alive = [each for each in range(WIDTH) if each not in _DEAD]
    nodes, weights, tensor = [], [], "x"
    for layer in range(LAYERS):
        matrix = np.zeros((WIDTH, WIDTH), np.float32)
        matrix[np.ix_(alive, alive)] = np.linalg.qr(random.standard_normal((len(alive), len(alive))))[0]
        if layer in planted:
            matrix[np.ix_(_DEAD, alive[::2])] = _OUTLIER  # half of its outputs are lost
        if not layer:
            matrix[_DEAD] = 0  # the input has no feature that is always 0
        weights.append(numpy_helper.from_array(matrix, f"w{layer}"))
        place = f"/model/encoder/layer.{layer}"
        nodes.append(helper.make_node("MatMul", [tensor, f"w{layer}"], [f"p{layer}"], f"{place}/dense/MatMul"))
        tensor = f"h{layer}" if layer + 1 < LAYERS else "y"
        nodes.append(helper.make_node("Tanh", [f"p{layer}"], [tensor], f"{place}/act/Tanh"))
    shape = ("batch", WIDTH)
    return graphs.graph(nodes, [("x", graphs.FLOAT, shape)], [("y", graphs.FLOAT, shape)], weights)


def with_surprises(planted: Collection[int]) -> onnx.ModelProto:
    """Return a chain in which planted layers read numbers of an input `z` that is large only in the validation.

    Static ranges of activations, calibrated without such numbers, cut them off, whatever the weights are.
    """
    random = np.random.default_rng(2)
    return _reading_z(planted, lambda: random.choice([-0.008, 0.008], (len(_DEAD), WIDTH)))


def with_cancellation(planted: Collection[int]) -> onnx.ModelProto:
    """Return a chain in which planted layers add large products of an input `z` that nearly cancel each other.

    `z` and its sum are exact in fp16, and the weights are not: rounded weights cancel less well.
    """
    random = np.random.default_rng(2)

    def rows() -> np.ndarray:
        large = random.uniform(1, 2, WIDTH)
        return np.stack([large, random.uniform(0, 1e-3, WIDTH) - large])

    return _reading_z(planted, rows)


def _reading_z(planted: Collection[int], rows: Callable[[], np.ndarray]) -> onnx.ModelProto:
    """Return a chain whose planted layers read `z` where features are 0; `rows` makes the weights that read it."""
    plain = model(())
    mask = np.zeros(WIDTH, np.float32)
    mask[_DEAD] = 1
    for weight in plain.graph.initializer:
        layer = int(weight.name[1:])
        if layer in planted:
            matrix = numpy_helper.to_array(weight).copy()
            matrix[_DEAD] = rows()
            matrix[np.ix_(_DEAD, _DEAD)] = 0
            weight.CopyFrom(numpy_helper.from_array(matrix, weight.name))
    for node in list(plain.graph.node):
        if node.op_type == "MatMul" and int(node.input[1][1:]) in planted:
            layer, at = node.input[1][1:], list(plain.graph.node).index(node)
            plain.graph.node.insert(at, helper.make_node("Add", [node.input[0], "surprise"], [f"s{layer}"]))
            node.input[0] = f"s{layer}"
    plain.graph.node.insert(0, helper.make_node("Mul", ["z", "mask"], ["surprise"]))
    plain.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    plain.graph.input.append(helper.make_tensor_value_info("z", graphs.FLOAT, ("batch", WIDTH)))
    return plain


def write(
    folder: Path,
    planted: Collection[int],
    *,
    fields: str,
    kind: Callable[[Collection[int]], onnx.ModelProto] = model,
) -> Path:
    """Write a project with a model of a kind, its samples and a recipe with further fields; return the recipe."""
    assert 0 not in planted
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    onnx.save(kind(planted), folder / "net.onnx")
    random = np.random.default_rng(1)
    for name_of_file, size in (("samples", 50.0), ("calibration", 0.0)):
        arrays = {"x": 0.3 * random.standard_normal((12, WIDTH))}
        if kind is with_surprises:
            arrays["z"] = size * random.standard_normal((12, WIDTH))
        if kind is with_cancellation:
            arrays["z"] = np.full((12, WIDTH), 8.0)
        np.savez(folder / f"{name_of_file}.npz", **{each: array.astype(np.float32) for each, array in arrays.items()})
    recipe = folder / "net.yaml"
    recipe.write_text(
        "# A model with planted layers.\nname: net\nmodel: {source: net.onnx}\n"
        f"profiles: [{{batch: [1, 2, 4]}}]\n{fields}"
    )
    return recipe


PLANTED_IN_BERT = ["encoder.layer.0.intermediate.dense", "encoder.layer.1.intermediate.dense"]


def write_bert(folder: Path, *, fields: str) -> Path:
    """Write a project with a tiny BERT of PyTorch in which two linear layers have outliers; return the recipe.

    The outliers read a feature that the LayerNorm before makes 0.
    """
    import torch
    import transformers

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    models.checkpoint(folder / "model", task="feature-extraction")
    model = transformers.AutoModel.from_pretrained(folder / "model")
    with torch.no_grad():
        for number, layer in enumerate(model.encoder.layer):
            layer.attention.output.LayerNorm.weight[0] = layer.attention.output.LayerNorm.bias[0] = 0
            assert f"encoder.layer.{number}.intermediate.dense" in PLANTED_IN_BERT
            layer.intermediate.dense.weight[::2, 0] = _OUTLIER
            layer.output.dense.weight *= 4  # what is lost shows beside the residual
    model.save_pretrained(folder / "model")
    texts = ("a good film", "the plot was bad", "where is it?")
    (folder / "samples.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    recipe = folder / "net.yaml"
    recipe.write_text(
        "name: net\nmodel: {source: model, task: feature-extraction}\n"
        f"profiles: [{{batch: [1, 1, 4], sequence: [1, 16, 32]}}]\n{fields}"
    )
    return recipe
