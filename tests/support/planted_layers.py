"""Models of 24 products in which chosen layers cannot be in few bits: their weights have huge outliers.

Some features are always 0, and the outliers are the weights that read them: they change no answer of the model. But
the numbers that share a scale with an outlier are rounded to 0, per channel and in blocks of 32 inputs. A planted
layer loses half of its outputs so, and a cosine of about 0.3.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import graphs
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


def write(folder: Path, planted: Collection[int], *, fields: str) -> Path:
    """Write a project with the model, its samples and a recipe with further fields; return the recipe."""
    assert 0 not in planted
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")
    onnx.save(model(planted), folder / "net.onnx")
    random = np.random.default_rng(1)
    for samples in ("samples", "calibration"):
        np.savez(folder / f"{samples}.npz", x=0.3 * random.standard_normal((12, WIDTH)).astype(np.float32))
    recipe = folder / "net.yaml"
    recipe.write_text(
        "# A model with planted layers.\nname: net\nmodel: {source: net.onnx}\n"
        f"profiles: [{{batch: [1, 2, 4]}}]\n{fields}"
    )
    return recipe
