"""The configuration of a model: its axes, batches, instances and text."""

import pytest
from text_config import SIGNATURE, model, tensors
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as triton
from engine.kit.triton.config import Signature
from engine.runtimes.backends import Backend


def signature(inputs, outputs):
    return Signature(tensors(**inputs), tensors(**outputs))


def test_batches_leave_the_first_axis_to_triton():
    config = model()
    assert config.max_batch_size == 8
    assert [list(tensor.dims) for tensor in config.input] == [[-1], [-1]]
    assert list(config.output[0].dims) == [-1, 384]
    assert config.input[0].data_type == model_config_pb2.TYPE_INT64
    assert config.HasField("dynamic_batching")


def test_without_batches_shapes_are_whole():
    config = model(signature({"x": (1, 3, 16, 16)}, {"y": (1, 5)}), batch=0)
    assert list(config.input[0].dims) == [1, 3, 16, 16]
    assert not config.HasField("dynamic_batching")


@pytest.mark.parametrize(
    ("inputs", "outputs", "most"),
    [
        ({"x": ("batch", 4)}, {"y": ("batch", 2)}, 32),
        ({"x": ("batch", 4)}, {"y": ("y_0", 2)}, 32),  # the output's axis has no name
        ({"x": ("batch", 4)}, {"y": ("found", 2)}, 0),  # a row for each detected object
        ({"x": ("time", "batch", 4)}, {"y": ("time", "batch", 4)}, 0),  # a recurrent model: time comes first
        ({"x": (1, 4)}, {"y": (1, 2)}, 0),
        ({"x": ("batch", 4), "threshold": ()}, {"y": ("batch", 2)}, 0),
    ],
)
def test_only_a_free_first_axis_that_says_batch_everywhere_is_one(inputs, outputs, most):
    largest = {"batch": 32, "time": 100, "found": 7}
    assert triton.max_batch(signature(inputs, outputs), None, largest) == most


def test_the_recipe_s_max_batch_size_stands_over_the_profiles():
    assert triton.max_batch(SIGNATURE, 4, {"batch": 32}) == 4
    assert triton.max_batch(SIGNATURE, 0, {"batch": 32}) == 0


def test_batches_of_a_model_with_a_fixed_axis_are_refused_with_its_shapes():
    with pytest.raises(StepError, match="max_batch_size: 4") as caught:
        triton.max_batch(signature({"x": (1, 4)}, {"y": (1, 2)}), 4, {})
    assert "x: 1 x 4" in str(caught.value)
    assert "max_batch_size: 0" in caught.value.hint


def test_an_optional_input_stays_one_and_there_are_no_batches():
    own = Signature(tensors(x=("batch", 4)), tensors(y=("batch", 2)), tensors(temperature=(1,)))
    assert triton.max_batch(own, None, {"batch": 32}) == 0
    with pytest.raises(StepError, match="max_batch_size: 4") as caught:
        triton.max_batch(own, 4, {"batch": 32})
    assert "no optional input" in caught.value.hint
    config = triton.model_config("m", own, backend=Backend.ONNXRUNTIME, batch=0)
    assert [(each.name, each.optional, list(each.dims)) for each in config.input] == [
        ("x", False, [-1, 4]),
        ("temperature", True, [1]),
    ]


def test_a_scalar_becomes_one_number_for_callers():
    config = model(signature({"x": ("batch", 4), "bias": ("batch",)}, {"y": ("batch",)}))
    assert list(config.output[0].dims) == [1]
    assert config.output[0].HasField("reshape")
    assert list(config.output[0].reshape.shape) == []


@pytest.mark.parametrize(("level", "number"), [("basic", -1), ("extended", 1), ("disabled", 2)])
def test_the_optimization_level_is_what_the_model_was_saved_for(level, number):
    assert model(level=level).optimization.graph.level == number
    assert not model(level="all").HasField("optimization")


def test_instances_are_where_the_model_was_measured():
    group = model_config_pb2.ModelInstanceGroup
    assert model(backend=Backend.TENSORRT, gpu=True).instance_group[0].kind == group.KIND_GPU
    assert model().instance_group[0].kind == group.KIND_CPU


def test_a_type_that_triton_does_not_have_is_named():
    odd = Signature({"x": Input("x", "complex64", ("batch", 2))}, tensors(y=("batch", 2)))
    with pytest.raises(StepError, match="cannot describe the model's tensor x") as caught:
        model(odd)
    assert "complex64" in str(caught.value)
    with pytest.raises(StepError, match="its shape is not known"):
        model(Signature({"x": Input("x", "float32", (), ranked=False)}, {}), batch=0)
