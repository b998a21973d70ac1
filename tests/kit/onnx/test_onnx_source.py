"""What an ONNX file says of itself, and which ones are refused at the door."""

from __future__ import annotations

import graphs
import pytest
from graphs import FLOAT, INT64
from onnx import TensorProto, helper

from engine.errors import StepError
from engine.kit.onnx import onnx_source


def test_a_model_is_described_by_its_opset_its_numbers_and_its_axes():
    assert onnx_source.describe(graphs.layers()).to_json() == {
        "architecture": "ONNX, opset 17",
        "parameters": 64 * 128 + 128 + 4 * 128,
        "axes": {"x": ["batch", 64]},
        "types": {"x": "float32"},
        "outputs": {"y": ["float32", ["batch", "classes"]]},
        "operators": {},
        "width": None,
    }


def tensor(name, number):
    return helper.make_tensor_value_info(name, number, ["n"])


def sequence(name, element):
    return helper.make_value_info(name, helper.make_sequence_type_proto(element))


SCORES = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (sequence("z", SCORES), "z is no tensor but a sequence of maps: that is not supported"),
        (
            sequence("z", helper.make_tensor_type_proto(FLOAT, ["n"])),
            "z is no tensor but a sequence of tensors: that is not supported",
        ),
        (helper.make_value_info("z", SCORES), "z is no tensor but a map: that is not supported"),
        (tensor("label", TensorProto.STRING), "the model's output label is text: that is not supported"),
    ],
)
def test_outputs_that_are_no_tensors_of_numbers_are_refused_by_name(output, text):
    model = graphs.layers()
    model.graph.output.append(output)
    with pytest.raises(StepError) as caught:
        onnx_source.describe(model)
    message, hint = str(caught.value).split("\n")
    assert message == text
    assert hint.startswith("hint: export it with ")
    assert ("integer labels" if "text" in text else "{'zipmap': False}") in hint


def test_a_model_that_takes_nothing_is_refused():
    node = helper.make_node("Identity", ["w"], ["y"])
    weight = graphs.weight("w", 4)
    model = graphs.graph([node], [("w", FLOAT, [4])], [("y", FLOAT, [4])], [weight])  # old models list weights so
    with pytest.raises(StepError) as caught:
        onnx_source.describe(model)
    assert str(caught.value).split("\n") == [
        "the model takes no inputs: there is nothing to serve",
        "  it gives: y",
        "hint: if the exporter folded the inputs into constants, export the model again with graph inputs",
    ]


@pytest.mark.parametrize(
    ("kind", "shape", "text", "hint"),
    [
        (TensorProto.STRING, ["n"], "the model's input x is text: that is not supported", "takes numbers"),
        (TensorProto.BFLOAT16, ["n"], "the model's input x is bfloat16: that is not supported yet", "float32"),
        (TensorProto.FLOAT, None, "the model does not state the number of axes of its input x", "with shapes"),
    ],
)
def test_an_input_that_no_package_can_take_is_refused_before_anything_else(kind, shape, text, hint):
    given = helper.make_tensor_value_info("x", kind, shape)
    graph = helper.make_graph([helper.make_node("Shape", ["x"], ["y"])], "refused", [given], [tensor("y", 7)])
    with pytest.raises(StepError) as caught:
        onnx_source.describe(helper.make_model(graph))
    assert caught.value.what == text
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", [b"xxxx", b"axis", b"data.bin"])
def test_a_name_that_is_not_utf8_is_refused_and_shown(tmp_path, name):
    stored = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    stored.external_data.add(key="location", value="data.bin")
    node = helper.make_node("Add", ["xxxx", "w"], ["y"])
    model = graphs.graph([node], [("xxxx", FLOAT, ["axis", 2])], [("y", FLOAT, ["axis", 2])], [stored])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString().replace(name, name[:-1] + b"\xe9"))
    with pytest.raises(StepError, match="a name that is not UTF-8") as caught:
        onnx_source.read(tmp_path / "model.onnx")
    assert repr(name[:-1] + b"\xe9") in caught.value.facts[0]
