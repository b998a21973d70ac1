"""An ONNX file that ONNX Runtime cannot load is refused by its header, with what to do, before anything is built."""

import onnx
import pytest
from onnx import TensorProto, helper

from engine.errors import StepError
from engine.runtimes.onnxruntime import loadable

STANDARD = helper.make_opsetid("", 20)


def model(op="Relu", domain="", *, opset=20, ir=10, dtype=TensorProto.FLOAT, imports=None):
    ends = [helper.make_tensor_value_info(name, dtype, ["batch", 8]) for name in "xy"]
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", opset)] if imports is None else imports
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def in_bf16():
    """A graph that computes in bf16 behind a Cast."""
    proto = model()
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.BFLOAT16), helper.make_node("Erf", ["h"], ["e"])]
    proto.graph.ClearField("node")
    proto.graph.node.extend([*nodes, helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT)])
    return proto


def refuse(proto, tmp_path, size=1000):
    onnx.save(proto, tmp_path / "model.onnx")
    loadable.refuse(proto, tmp_path / "model.onnx", size=size)


FAULTS = {
    "IR version": (model(ir=99), "has the IR version 99", "max supported IR version", "ir_version = 10"),
    "opset": (model(opset=99), "uses opset 99 of ai.onnx", "till opset", "older opset"),
    "opset of another domain": (
        model("Binarizer", "ai.onnx.ml", imports=[STANDARD, helper.make_opsetid("ai.onnx.ml", 99)]),
        "uses opset 99 of ai.onnx.ml",
        "till opset",
        "older opset",
    ),
    "no opset": (model(imports=[]), "names no opset", "opset_import is empty", "export the model again"),
    "an opset without code": (model(opset=5), "ONNX Runtime", "opset 5", "opset 13 or newer"),
    "a type without code": (in_bf16(), "has an operator that ONNX Runtime", "opset 20", "export it in float32, and"),
    "custom operator": (
        model("Foo", "com.acme", imports=[STANDARD, helper.make_opsetid("com.acme", 1)]),
        "has operators that ONNX Runtime",
        "Foo (com.acme)",
        "ONNX's own operators",
    ),
    "domain that is not imported": (model("Foo", "com.acme"), "has operators", "Foo (com.acme)", "own operators"),
    "mistyped operator": (model("Reluu"), "has operators", "Reluu (ai.onnx, opset 20)", "the opset that has the"),
    "operator of a later opset": (model("Swish"), "has operators", "Swish (ai.onnx, opset 20)", "the opset that has"),
    "bfloat16": (model(dtype=TensorProto.BFLOAT16), "the model's input x is bfloat16", "supported: bool", "float32"),
    "float8": (model("Identity", dtype=TensorProto.FLOAT8E4M3FN), "is float8_e4m3fn", "supported", "float32"),
    "text": (model("Identity", dtype=TensorProto.STRING), "input x is text", "", "a tokenizer"),
}


@pytest.mark.parametrize(("proto", "what", "fact", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_header_that_onnx_runtime_cannot_load_is_refused_with_what_to_do(tmp_path, proto, what, fact, hint):
    with pytest.raises(StepError) as caught:
        refuse(proto, tmp_path)
    assert what in caught.value.what
    assert fact in "\n".join(caught.value.facts)
    assert hint in caught.value.hint
    assert not any("onnxruntime_src" in each or str(tmp_path) in each for each in caught.value.facts)


def test_what_onnx_runtime_loads_passes_with_its_own_operators_and_functions_of_the_model(tmp_path):
    refuse(model(), tmp_path)
    refuse(model("Gelu", "com.microsoft", imports=[STANDARD, helper.make_opsetid("com.microsoft", 1)]), tmp_path)
    node = helper.make_node("Relu", ["x"], ["y"])
    proto = model("Twice", "mine", imports=[STANDARD, helper.make_opsetid("mine", 1)])
    proto.functions.append(helper.make_function("mine", "Twice", ["x"], ["y"], [node], [STANDARD]))
    refuse(proto, tmp_path)


def test_a_graph_with_types_that_do_not_fit_is_opened_only_where_it_is_small(tmp_path):
    proto = model("Identity")
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    refuse(proto, tmp_path, size=1 << 40)
    with pytest.raises(StepError, match="ONNX Runtime cannot open the model"):
        refuse(proto, tmp_path)
