"""Opsets: the version of ONNX's own domain under both of its names, and models raised to a newer one."""

import graphs
import onnx
import pytest
from graphs import FLOAT
from onnx import helper

from engine.kit.onnx import ir_models, opsets
from engine.kit.onnx.opsets import OpsetError
from engine.runtimes.onnxruntime import session as ort


def gemm(opset, *, ir):
    text = "(float[n, 8] x, float[8, 8] w, float[8] b) => (float[n, 8] y) { y = Gemm(x, w, b) }"
    return graphs.parsed(text, opset=opset, ir=ir)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_onnxs_own_domain_has_two_names(domain):
    model = helper.make_model(graphs.layers().graph, opset_imports=[helper.make_opsetid(domain, 17)])
    assert opsets.version(model) == 17
    assert opsets.versions(model) == {"": 17, "ai.onnx": 17}


def test_a_model_without_imports_is_of_version_0():
    assert opsets.versions(onnx.ModelProto()) == {"": 0, "ai.onnx": 0}


def test_a_recent_model_is_returned_as_it_is():
    model = gemm(17, ir=8)
    assert opsets.raised(model, 17) is model


def test_an_old_model_gets_the_opset_and_the_ir_version_that_goes_with_it():
    raised = opsets.raised(gemm(8, ir=3), 19)
    assert opsets.version(raised) == 19
    assert raised.ir_version == 9
    onnx.checker.check_model(raised)


def test_an_operator_without_a_way_up_is_told_with_both_opsets():
    model = gemm(8, ir=3)
    model.graph.node[0].op_type = "Nonsense"
    with pytest.raises(OpsetError, match="written in opset 8, and cannot be converted to 11"):
        opsets.raised(model, 11)


def test_an_operator_that_onnx_runtime_adds_is_carried_over():
    model = gemm(12, ir=7)
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "b"], ["z"], epsilon=1e-5)
    model.graph.node.append(node)
    raised = opsets.raised(model, 13)
    assert [(node.domain, node.op_type) for node in raised.graph.node][-1] == ("", "SimplifiedLayerNormalization")
    assert opsets.version(raised) == 13
    assert "unknown.to.onnx" not in opsets.versions(raised) | opsets.versions(model)


@pytest.mark.parametrize(
    ("opset", "operator", "becomes"),
    [(20, "Gelu", 23), (21, "Gelu", 23), (19, "Relu", 19), (20, "GroupNormalization", 20)],
)
def test_a_model_is_relabeled_only_where_its_operators_mean_the_same(tmp_path, opset, operator, becomes):
    inputs = ["x", "s", "s"] if operator == "GroupNormalization" else ["x"]
    node = helper.make_node(operator, inputs, ["y"], **({"num_groups": 2} if len(inputs) > 1 else {}))
    ends = [("x", FLOAT, [1, 4, 3])], [("y", FLOAT, [1, 4, 3])]
    model = graphs.graph([node], *ends, [graphs.weight("s", 2)] if len(inputs) > 1 else [], opset=opset)
    raised = opsets.relabeled(ir_models.load(graphs.write(tmp_path, model)), 23)
    assert raised.opset_imports[""] == becomes
    if becomes == 23:
        ir_models.save(raised, tmp_path / "raised")
        ort.refuse_unloadable(tmp_path / "raised" / "model.onnx")
