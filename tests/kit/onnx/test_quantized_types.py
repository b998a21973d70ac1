"""The types to which the Q/DQ operators of a graph quantize."""

from pathlib import Path

import onnx
import pytest
import typed_graphs
from onnx import helper
from typed_graphs import F8, F16, F32, I4, I8, I32, U8, WIDE

from engine.kit.onnx import quantized_types

FILES = Path(typed_graphs.__file__).parent / "modelopt"


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("mlp", ()),
        ("int8", ("int8",)),
        ("int8_fp32", ("int8",)),
        ("fp8", ("fp8",)),
        ("fp8_fp32", ("fp8",)),
        ("int4", ("int4",)),
        ("int4_nvidia", ("int4",)),
        ("int4_nvidia_rtn", ("int4",)),
    ],
)
def test_the_types_of_the_files_of_model_optimizer(name, types):
    assert quantized_types.of(onnx.load(FILES / f"{name}.onnx")) == types


@pytest.mark.parametrize(
    ("model", "types"),
    [
        (typed_graphs.quantized(F16, I8), ("int8",)),
        (typed_graphs.quantized(F32, U8), ("uint8",)),
        (typed_graphs.quantized(F16, F8), ("fp8",)),
        (typed_graphs.weights_alone(F16, I4, F16, (4, 64), axis=0, block_size=16), ("int4",)),
        (typed_graphs.of_nvidia_domain(F8), ("fp8",)),
        (typed_graphs.two("MatMul", F32, F32), ()),
    ],
    ids=["int8", "uint8", "fp8", "int4", "NVIDIA's", "none"],
)
def test_the_types_of_one_graph(model, types):
    assert quantized_types.of(model) == types


def test_a_quantize_linear_that_states_no_type_gives_uint8_as_onnx_says():
    nodes = [
        helper.make_node("QuantizeLinear", ["a", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    model = typed_graphs.graph(nodes, [("a", F32, WIDE)], (F32, WIDE), [typed_graphs.constant("s", F32)])
    assert quantized_types.of(model) == ("uint8",)


def test_a_bias_in_int32_is_no_quantized_type():
    nodes = [helper.make_node("DequantizeLinear", ["b", "s"], ["v"]), helper.make_node("Add", ["a", "v"], ["y"])]
    stored = [typed_graphs.constant("b", I32, 64, value=1), typed_graphs.constant("s", F32)]
    assert quantized_types.of(typed_graphs.graph(nodes, [("a", F32, WIDE)], (F32, WIDE), stored)) == ()


def test_a_zero_point_in_a_constant_node_states_the_type():
    nodes = [
        helper.make_node("Constant", [], ["z"], value=typed_graphs.constant("z", I8)),
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    model = typed_graphs.graph(nodes, [("a", F32, WIDE)], (F32, WIDE), [typed_graphs.constant("s", F32)])
    assert quantized_types.of(model) == ("int8",)
