import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import config as triton
from engine.kit.triton import fields as triton_fields
from engine.kit.triton import gpu as triton_gpu
from engine.kit.triton import parts
from engine.kit.triton.config import Signature


def tensors(**shapes):
    return {name: Input(name, "float32", tuple(shape)) for name, shape in shapes.items()}


def signature(inputs, outputs):
    return Signature(tensors(**inputs), tensors(**outputs))


TEXT = Signature(
    {name: Input(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask")},
    tensors(last_hidden_state=("batch", "sequence", 384)),
)


def model(found=TEXT, **options):
    return triton.model_config("m", found, **{"platform": "onnxruntime_onnx", "batch": 8, **options})


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
        ({"x": ("batch", 4)}, {"y": ("found", 2)}, 0),  # as many as are found, not as many as came in
        ({"x": ("time", "batch", 4)}, {"y": ("time", "batch", 4)}, 0),  # a recurrent model: time comes first
        ({"x": (1, 4)}, {"y": (1, 2)}, 0),
        ({"x": ("batch", 4), "threshold": ()}, {"y": ("batch", 2)}, 0),
    ],
)
def test_only_a_free_first_axis_that_says_batch_everywhere_is_one(inputs, outputs, most):
    largest = {"batch": 32, "time": 100, "found": 7}
    assert triton.max_batch(signature(inputs, outputs), None, largest) == most


def test_the_recipe_s_max_batch_size_stands_over_the_profiles():
    assert triton.max_batch(TEXT, 4, {"batch": 32}) == 4
    assert triton.max_batch(TEXT, 0, {"batch": 32}) == 0


def test_batches_of_a_model_with_a_fixed_axis_are_refused_with_its_shapes():
    with pytest.raises(StepError, match="max_batch_size: 4") as caught:
        triton.max_batch(signature({"x": (1, 4)}, {"y": (1, 2)}), 4, {})
    assert "x: 1 x 4" in str(caught.value)
    assert "max_batch_size: 0" in caught.value.hint


def test_a_scalar_becomes_one_number_for_callers():
    config = model(signature({"x": ("batch", 4), "bias": ("batch",)}, {"y": ("batch",)}))
    assert list(config.output[0].dims) == [1]
    assert config.output[0].HasField("reshape")
    assert list(config.output[0].reshape.shape) == []


@pytest.mark.parametrize(("level", "number"), [("basic", -1), ("extended", 1), ("disabled", 2)])
def test_the_optimisation_level_is_what_the_model_was_saved_for(level, number):
    assert model(level=level).optimization.graph.level == number
    assert not model(level="all").HasField("optimization")


def test_instances_are_where_the_model_was_measured():
    group = model_config_pb2.ModelInstanceGroup
    assert model(platform="tensorrt_plan", gpu=True).instance_group[0].kind == group.KIND_GPU
    assert model().instance_group[0].kind == group.KIND_CPU


def test_every_group_on_gpus_lists_every_profile_also_one_that_the_recipe_writes():
    config = model(platform="tensorrt_plan", gpu=True)
    triton_fields.merge(config, {"instance_group": [{"count": 2}, {"kind": "KIND_GPU", "profile": ["1"]}]})
    triton_gpu.finish(config, profiles=2)
    assert [list(group.profile) for group in config.instance_group] == [["0", "1"], ["1"]]
    assert {group.kind for group in config.instance_group} == {model_config_pb2.ModelInstanceGroup.KIND_GPU}
    alone = model(platform="tensorrt_plan", gpu=True)
    triton_gpu.finish(alone, profiles=1)
    assert not alone.instance_group[0].profile


def test_a_model_of_a_gpu_is_not_served_on_a_cpu():
    config = model(platform="tensorrt_plan", gpu=True)
    triton_fields.merge(config, {"instance_group": [{"kind": "KIND_CPU"}]})
    with pytest.raises(StepError, match="puts the model on a CPU"):
        triton_gpu.finish(config, profiles=1)


def test_cuda_graphs_are_captured_for_the_usual_shape_of_each_profile():
    config = model(platform="tensorrt_plan", gpu=True)
    triton_gpu.cuda_graphs(config, [{"input_ids": (1, 16)}, {"input_ids": (8, 128)}])
    told = config.optimization.cuda
    assert told.graphs
    assert [(spec.batch_size, list(spec.input["input_ids"].dim)) for spec in told.graph_spec] == [(1, [16]), (8, [128])]
    whole = model(platform="tensorrt_plan", gpu=True, batch=0)
    triton_gpu.cuda_graphs(whole, [{"input_ids": (8, 128)}])
    spec = whole.optimization.cuda.graph_spec[0]
    assert (spec.batch_size, list(spec.input["input_ids"].dim)) == (0, [8, 128])


def test_an_accelerator_comes_with_its_parameters():
    config = model(gpu=True)
    triton_gpu.accelerated(config, "tensorrt", {"trt_engine_cache_enable": "1"})
    [accelerator] = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert dict(accelerator.parameters) == {"trt_engine_cache_enable": "1"}


def test_triton_does_not_put_more_together_than_a_profile_takes():
    triton_gpu.check_batch(model(), 8)
    triton_gpu.check_batch(model(), None)
    with pytest.raises(StepError, match="max_batch_size: 8 is more than the profiles take: 4"):
        triton_gpu.check_batch(model(), 4)


def test_a_type_that_triton_does_not_have_is_named():
    odd = Signature({"x": Input("x", "complex64", ("batch", 2))}, tensors(y=("batch", 2)))
    with pytest.raises(StepError, match="cannot describe the model's tensor x") as caught:
        model(odd)
    assert "complex64" in str(caught.value)
    with pytest.raises(StepError, match="its shape is not known"):
        model(Signature({"x": Input("x", "float32", (), ranked=False)}, {}), batch=0)


ROW = parts.Tensor("TEXT", "TYPE_STRING", (1,))


def around(made, *, texts=ROW):
    """The tokenizer of a model, and the ensemble of both."""
    own = parts.tensors(made.input, made)
    tokenizer = parts.python("m_tokenizer", made, takes=[texts], gives=own, work="tokenizer.py", settings={})
    chain = [tokenizer, parts.Part(made)]
    given = [tensor.name for tensor in made.output]
    return tokenizer.config, parts.ensemble("m_text", chain, takes=[texts], gives=given, task="fill-mask").config


def test_the_ensemble_joins_tokenizer_and_model_by_the_tensors_names():
    tokenizer, ensemble = around(model())
    assert [step.model_name for step in ensemble.ensemble_scheduling.step] == ["m_tokenizer", "m"]
    assert dict(ensemble.ensemble_scheduling.step[1].input_map) == {
        "input_ids": "input_ids",
        "attention_mask": "attention_mask",
    }
    assert list(ensemble.input[0].dims) == [1]
    assert ensemble.input[0].data_type == model_config_pb2.TYPE_STRING
    assert [tensor.name for tensor in ensemble.output] == ["last_hidden_state"]
    assert ensemble.max_batch_size == tokenizer.max_batch_size == 8
    assert ensemble.parameters["recipe_task"].string_value == "fill-mask"
    assert "recipe_task" not in tokenizer.parameters


def test_without_batches_a_row_of_texts_is_a_dimension_of_its_own():
    tokenizer, ensemble = around(model(batch=0), texts=parts.Tensor("TEXT", "TYPE_STRING", (2,)))
    assert list(tokenizer.input[0].dims) == list(ensemble.input[0].dims) == [-1, 2]
    assert list(tokenizer.output[0].dims) == [-1, -1]


def test_the_recipe_s_own_word_for_what_a_model_is_for_stands():
    made = model()
    parts.mark(made, "tensors")
    parts.mark(made, "fill-mask")
    assert made.parameters["recipe_task"].string_value == "tensors"


def test_what_is_written_reads_back_as_the_same_configuration():
    config = model(level="basic")
    again = text_format.Parse(triton.as_text(config), model_config_pb2.ModelConfig())
    assert again == config


def merged(fields):
    config = model()
    triton_fields.merge(config, fields)
    return config


def test_fields_are_taken_verbatim_and_stand_over_ours():
    config = merged(
        {
            "dynamic_batching": {"max_queue_delay_microseconds": 100, "preferred_batch_size": [4, 8]},
            "instance_group": [{"count": 2, "kind": "KIND_CPU"}],
            "parameters": {"intra_op_thread_count": {"string_value": "1"}},
            "response_cache": {"enable": True},
        }
    )
    assert config.dynamic_batching.max_queue_delay_microseconds == 100
    assert [group.count for group in config.instance_group] == [2]
    assert config.parameters["intra_op_thread_count"].string_value == "1"
    assert config.response_cache.enable
    assert len(config.input) == 2


def test_a_message_is_merged_with_what_we_say_in_it():
    config = model(level="basic")
    triton_fields.merge(config, {"optimization": {"input_pinned_memory": {"enable": False}}})
    assert config.optimization.graph.level == -1
    assert config.optimization.HasField("input_pinned_memory")


def test_null_takes_a_field_out_and_an_empty_one_puts_it_in():
    assert not merged({"dynamic_batching": None}).HasField("dynamic_batching")
    assert merged({"sequence_batching": {}}).HasField("sequence_batching")
    assert merged({"version_policy": {"all": {}}}).version_policy.HasField("all")


def test_false_and_zero_stand_over_what_the_package_says():
    config = model(level="basic")
    config.optimization.cuda.graphs = True
    triton_fields.merge(config, {"optimization": {"graph": {"level": 0}, "cuda": {"graphs": False}}})
    assert config.optimization.graph.level == 0
    assert not config.optimization.cuda.graphs


def test_null_takes_a_field_out_of_a_message_and_a_key_out_of_a_map():
    config = model(level="basic")
    config.parameters["a"].string_value = "1"
    triton_fields.merge(config, {"optimization": {"graph": None, "eager_batching": True}, "parameters": {"a": None}})
    assert not config.optimization.HasField("graph")
    assert config.optimization.eager_batching
    assert not config.parameters
    assert config.HasField("dynamic_batching")
