"""Options of the TensorRT provider where it takes no precision from the graph, and the provider's own binary."""

import os
import shutil

import graphs
import numpy as np
import onnx
import provider_library
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine.errors import StepError
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import tensorrt_provider

FP16 = {"trt_fp16_enable": "1", "trt_layer_norm_fp32_fallback": "1"}
LIBRARIES = "ORT_TENSORRT_LIBRARIES"
"""Further libraries to read: pairs of a version and a path, "1.27.0=/a/lib.so:1.31.1=/b/lib.so"."""


def cast(to):
    """A graph that rounds its input to another type and back."""
    nodes = [helper.make_node("Cast", ["x"], ["low"], to=to), helper.make_node("Cast", ["low"], ["y"], to=1)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("x", "y")]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))


def quantized(dtype=np.int8):
    """A graph with a pair of Q/DQ in fp16."""
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("QuantizeLinear", ["half", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    stored = [
        numpy_helper.from_array(np.array(0.5, np.float16), "scale"),
        numpy_helper.from_array(np.array(0, dtype), "zero"),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["n", 4]),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], stored))


@pytest.mark.parametrize("version", ["1.27.0", "1.31.1"])
def test_a_provider_that_takes_no_precision_from_the_graph_is_given_it_as_options(version, capsys):
    assert tensorrt_provider.precisions(cast(TensorProto.FLOAT16), version) == FP16
    assert tensorrt_provider.precisions(cast(TensorProto.BFLOAT16), version) == {"trt_bf16_enable": "1"}
    assert tensorrt_provider.precisions(quantized(), version) == {**FP16, "trt_int8_enable": "1"}
    assert f"onnxruntime-gpu {version}: its TensorRT provider builds weakly typed networks" in capsys.readouterr().out


def test_a_provider_that_takes_precisions_from_the_graph_gets_no_option_which_would_end_that(capsys):
    assert tensorrt_provider.precisions(quantized(), "1.24.4") == {}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["INT4", "FLOAT8E4M3FN"])
def test_a_precision_without_an_option_is_refused(kind):
    model = quantized()
    model.graph.initializer[1].CopyFrom(helper.make_tensor("zero", getattr(TensorProto, kind), [], [0]))
    with pytest.raises(StepError, match=f"cannot compute in {'int4' if kind == 'INT4' else 'fp8'} with TensorRT") as e:
        tensorrt_provider.precisions(model, "1.31.1")
    assert e.value.hint == ort_providers.TYPED_HINT


def test_bytes_that_nothing_dequantizes_are_no_precision():
    model = cast(TensorProto.FLOAT)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(3, np.int8), "flags"))
    onnx.checker.check_model(model)
    assert tensorrt_provider.stated_precisions(model) == frozenset()
    assert tensorrt_provider.stated_precisions(quantized(np.uint8)) == {"fp16", "int8"}
    assert tensorrt_provider.precisions(graphs.layers(), "1.31.1") == {}


def libraries():
    """The provider's libraries that are here: of the installed onnxruntime, and those that a variable names."""
    named = [pair.partition("=") for pair in os.environ.get(LIBRARIES, "").split(os.pathsep) if pair]
    here = provider_library.installed()
    return [(path, version) for version, _, path in named] + ([here] if here else [])


def test_the_provider_s_binary_passes_the_flags_that_the_table_says():
    """A contract with the wheels of onnxruntime-gpu: what TensorRT they were built with, and what flags they pass."""
    if not libraries():
        pytest.skip(f"no onnxruntime-gpu is installed, and {LIBRARIES} names no library of its TensorRT provider")
    if shutil.which("objdump") is None:
        pytest.skip("objdump (binutils) is not installed")
    for path, version in libraries():
        provider = provider_library.Provider(path)
        tensorrt, typed = provider.tensorrt(), provider.strongly_typed()
        print(f"onnxruntime-gpu {version}: TensorRT {tensorrt}, strongly typed: {typed}")
        takes = ort_providers.takes_types(version)
        assert (typed and tensorrt[0] >= 10) == takes or tensorrt[0] >= 11, (
            f"tensorrt_provider.py is wrong for {version}"
        )
