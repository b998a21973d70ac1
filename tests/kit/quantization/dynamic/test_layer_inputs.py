"""Per-token scaling: a model with divided rows computes the same; absolute values only where they are needed."""

import graphs
import numpy as np
import pytest

from engine.kit.onnx import ir_models, onnx_files
from engine.kit.onnx.ir_models import Pipeline
from engine.kit.quantization.dynamic import layer_inputs, ort_quantizer
from engine.runtimes.onnxruntime import session as ort


@pytest.mark.parametrize("opset", [11, 17, 18, 20])
@pytest.mark.parametrize(("operator", "absolute"), [("Relu", 0), ("Elu", 1)])
def test_absolute_values_are_computed_only_where_values_may_be_negative(tmp_path, opset, operator, absolute):
    text = f"(float[rows, 64] x) => (float[rows, 16] y) {{ a = {operator}(x) y = MatMul(a, w) }}"
    before = graphs.write(tmp_path / "before", graphs.parsed(text, opset=opset, w=(64, 16)))
    passes = Pipeline(ir_models.load(before))
    inputs = layer_inputs.find(passes.model, ort_quantizer.prepare(passes))
    passes.run(layer_inputs.scale_rows, inputs)
    ir_models.save(passes.model, tmp_path / "after")
    operators = [node.op_type for node in onnx_files.load_graph(tmp_path / "after").graph.node]
    assert (operators.count("Abs"), operators.count("Div")) == (absolute, 1)
    sizes = np.array([[1e3], [1.0], [1e-3], [0.0]], np.float32)
    x = {"x": np.random.default_rng(9).standard_normal((4, 64)).astype(np.float32) * sizes}
    one, two = (ort.run(ort.session(folder, threads=1), x)["y"] for folder in (before, tmp_path / "after"))
    np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-6)
