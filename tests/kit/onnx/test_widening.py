"""A model in half precision becomes one in float32: the same answers, inputs and outputs, and no half inside."""

import graphs
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import unseen_models
from onnx import TensorProto, helper, numpy_helper
from transformers import BertConfig, BertForSequenceClassification

from engine.kit.onnx import widening

HALF, FLOAT, BOOL = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.BOOL


def answers(model, inputs):
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def branching():
    """A graph whose If reads a tensor of the main graph and an input of it, and gives an output of the graph."""
    bodies = {
        name: helper.make_graph(
            [helper.make_node(operator, ["x", "h"], [f"{name}_y"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_y", HALF, None)],
        )
        for name, operator in (("then_branch", "Add"), ("else_branch", "Mul"))
    }
    values = numpy_helper.from_array(np.arange(8, dtype=np.float16), "w")
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("If", ["flag"], ["y"], **bodies),
        helper.make_node("ConstantOfShape", ["size"], ["c"], value=helper.make_tensor("v", HALF, [1], [2.0])),
        helper.make_node("Cast", ["flag"], ["one"], to=HALF),
        helper.make_node("Add", ["c", "one"], ["z"]),
    ]
    size = numpy_helper.from_array(np.array([3]), "size")
    inputs = [("x", HALF, [8]), ("flag", BOOL, [])]
    return graphs.graph(nodes, inputs, [("y", HALF, [8]), ("z", HALF, [3])], [values, size], opset=17, ir=9)


def bert():
    """A tiny BERT, exported by torch in half precision."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    torch.manual_seed(0)
    module = BertForSequenceClassification(BertConfig(vocab_size=99, **sizes)).eval().half()
    return torch.onnx.export(module, (torch.ones((2, 7), dtype=torch.int64),), dynamo=True, verbose=False).model_proto


MODELS = {
    "halves inside and outside": (unseen_models.halves, {"features": np.ones((2, 6), np.float16)}),
    "branches": (branching, {"x": np.arange(8, dtype=np.float16) / 8, "flag": np.ones((), bool)}),
    "a transformer": (bert, {"input_ids": np.arange(14).reshape(2, 7)}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole("branches")] if "former" in name else []) for name in MODELS]
)
def test_the_answers_and_the_ends_stay_and_no_half_is_left_inside(name):
    make, inputs = MODELS[name]
    model = make()
    assert widening.has_half(model)
    expected = answers(model, inputs)
    ends = ([str(value) for value in each] for each in (model.graph.input, model.graph.output))
    before = list(ends)
    after = widening.widened(model)
    onnx.checker.check_model(after, full_check=True)
    assert not widening.has_half(after)
    assert [[str(value) for value in each] for each in (after.graph.input, after.graph.output)] == before
    for one, other in zip(expected, answers(after, inputs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=0.01, atol=0.01)


def test_numbers_in_bf16_stay_the_same():
    numbers = np.random.default_rng(0).standard_normal((4, 4)).astype(ml_dtypes.bfloat16)
    stored = helper.make_tensor("w", TensorProto.BFLOAT16, [4, 4], numbers.tobytes(), raw=True)
    text = "(float[1, 4] x) => (float[1, 4] y) { f = Cast<to = 1>(w) y = MatMul(x, f) }"
    model = widening.widened(graphs.parsed(text, w=stored))
    np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), numbers.astype(np.float32))
