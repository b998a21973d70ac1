"""Overrides of Triton's configuration: wrong ones are refused before a server starts, others reach config.pbtxt."""

import json

import executions
import graphs
import pytest
from broken_overrides import CUDA, GPU, LAYERS, NAMED, REFUSED, TEXT, WARM
from google.protobuf import text_format
from hypothesis import given, settings
from overrides_of import PASTED, messages
from tritonclient.grpc import model_config_pb2

from engine import api
from engine.errors import RecipeError, StepError
from engine.feasibility import triton
from engine.feasibility.triton import About, ConfigTensor, Fault
from engine.feasibility.triton.limits import DISTINCT, LIMITS, NEEDED, SHAPES
from engine.feasibility.triton.typed import typed
from engine.kit.triton import config as configs
from engine.kit.triton import fields
from engine.kit.triton.config import Signature
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import ENUMS, MESSAGES, ONE_OF, SINCE
from engine.runtimes.backends import Backend


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with an ONNX file that takes batches, one that takes none, and a small BERT's config.json."""
    root = tmp_path_factory.mktemp("project")
    (root / "pyproject.toml").touch()
    for name, model in (("layers", graphs.layers()), ("whole", whole())):
        graphs.write(root / name, model)
        (root / name / "model.onnx").rename(root / f"{name}.onnx")
    (root / "model").mkdir()
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 8, "vocab_size": 9,
              "max_position_embeddings": 512, "type_vocab_size": 1}  # fmt: skip
    (root / "model" / "config.json").write_text(json.dumps(config))
    header = json.dumps({"weight": {"dtype": "F32", "shape": [8, 8], "data_offsets": [0, 256]}}).encode()
    (root / "model" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(256))
    return root


def whole():
    """Return a model x [2, 4] -> y [2, 4] without free axes."""
    node = graphs.helper.make_node("Relu", ["x"], ["y"])
    return graphs.graph([node], [("x", graphs.FLOAT, [2, 4])], [("y", graphs.FLOAT, [2, 4])])


def check(project, text):
    path = project / "recipe.yaml"
    path.write_text(text)
    return api.check([path], cache=project / "cache")


@pytest.mark.parametrize(("recipe", "overrides", "what", "hint"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_at_its_place_with_the_reason_and_what_works(project, recipe, overrides, what, hint):
    marked = recipe % overrides
    before = marked[: marked.index("»")]
    with pytest.raises(RecipeError) as caught:
        check(project, marked.replace("»", ""))
    error = caught.value
    assert what in error.what
    assert hint in error.hint
    assert error.hint or "is meant" in error.what
    place = (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    assert (error.position.line, error.position.column) == place
    assert error.exit == 2


def test_there_are_more_than_a_hundred():
    assert len(REFUSED) > 100


def test_a_pasted_configuration_is_taken_as_it_is(project):
    [checked] = check(project, PASTED)
    assert checked.model


GOOD = {
    "smaller dims of a free axis": (
        TEXT, ("input: [{name: input_ids, data_type: TYPE_INT64, dims: [128]}, "
        "{name: attention_mask, data_type: TYPE_INT64, dims: [128]}]")),
    "dims that are reshaped": (
        LAYERS, "input: [{name: x, data_type: TYPE_FP32, dims: [8, 8], reshape: {shape: [64]}}]"),
    "OpenVINO": (LAYERS, "optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: openvino}]}}"),
    "more tokenizers": (TEXT, "models: {tokenizer: {instance_group: [{count: 4, kind: KIND_CPU}]}}"),
    "a cache before everything": (TEXT, "models: {ensemble: {response_cache: {enable: true}}}"),
    "a limit of an ensemble": (TEXT, "models: {ensemble: {ensemble_scheduling: {max_inflight_requests: 8}}}"),
    "a tokenizer on a machine's GPU": (GPU, "models: {tokenizer: {instance_group: [{kind: KIND_GPU}]}}"),
    "a tokenizer beside a GPU": (GPU, "models: {tokenizer: {instance_group: [{kind: KIND_CPU}]}}"),
    "one profile by its number": (GPU, "instance_group: [{profile: ['0'], gpus: [0, 1], count: 2}]"),
    "options of CUDA": (
        CUDA, ("optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: cuda, "
        "parameters: {cudnn_conv_algo_search: '0'}}]}}")),
    "CUDA graphs of the usual shapes": (GPU, "optimization: {cuda: {graphs: true}}"),
    "CUDA graphs of shapes with a lower bound": (
        GPU, ("max_batch_size: 8, optimization: {cuda: {graphs: true, graph_spec: [{batch_size: 8}, {batch_size: 4, "
        "input: {input_ids: {dim: [128]}, attention_mask: {dim: [128]}}, "
        "graph_lower_bound: {batch_size: 1, input: {input_ids: {dim: [1]}, attention_mask: {dim: [1]}}}}]}}")),
    "graphs beside those of the package": (
        GPU + "tensorrt: {cuda_graph: true}\n", "optimization: {cuda: {graph_spec: [{batch_size: 8}]}}"),
    "no scheduler": (LAYERS, "dynamic_batching: null"),
    "sequences": (LAYERS, "sequence_batching: {oldest: {max_candidate_sequences: 4, preferred_batch_size: [8]}}"),
    "encoder and decoder": (
        NAMED % ("text2text-generation", "%s"), "encoder: {instance_group: [{count: 2}]}, decoder: {parameters: {}}"),
    "a warm-up of what is reshaped": (
        LAYERS,
        "input: [{name: x, data_type: TYPE_FP32, dims: [8, 8], reshape: {shape: [64]}}], "
        + WARM.replace("[64]", "[8, 8]"),
    ),
    "nothing": (TEXT, "models: {tokenizer: {}}"),
}  # fmt: skip


@pytest.mark.parametrize(("recipe", "overrides"), GOOD.values(), ids=GOOD)
def test_what_triton_takes_is_taken(project, recipe, overrides):
    check(project, recipe % overrides)


def test_the_table_of_fields_is_tritons_protobuf():
    messages, enums, choices = {}, {}, {}
    kinds = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 8: "bool", 9: "string", 13: "uint32"}

    def kind_of(field):
        if field.message_type is not None:
            read(field.message_type)
            return field.message_type.full_name.removeprefix("inference.")
        if field.enum_type is not None:
            name = field.enum_type.full_name.removeprefix("inference.")
            enums[name] = [value.name for value in field.enum_type.values]
            return name
        return kinds[field.type]

    def shape_of(field):
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            return f"{{{kind_of(key)}:{kind_of(value)}}}"
        return f"[{kind_of(field)}]" if field.is_repeated else kind_of(field)

    def read(message):
        name = message.full_name.removeprefix("inference.")
        if name in messages:
            return
        messages[name] = {}
        messages[name] |= {field.name: shape_of(field) for field in message.fields}
        groups = [[field.name for field in group.fields] for group in message.oneofs]
        if groups := [group for group in groups if len(group) > 1]:
            choices[name] = groups

    read(model_config_pb2.ModelConfig.DESCRIPTOR)
    assert (messages, enums, choices) == (MESSAGES, ENUMS, ONE_OF)
    named = {f"{kind}.{name}" for kind, names in {**messages, **enums}.items() for name in names}
    assert named.issuperset([*SINCE, *LIMITS, *SHAPES, *DISTINCT])
    assert named.issuperset(f"{kind}.{name}" for kind, names in NEEDED.items() for name in names)


@settings(max_examples=60, deadline=None)
@given(messages())
def test_whatever_fits_the_table_is_the_same_after_config_pbtxt(overrides):
    plain = typed(overrides)
    config = model_config_pb2.ModelConfig()
    fields.merge(config, overrides)
    again = text_format.Parse(configs.as_text(config), model_config_pb2.ModelConfig())
    assert again == config
    from_plain = model_config_pb2.ModelConfig()
    fields.merge(from_plain, plain)
    assert from_plain == config


LAYER = Signature(
    {"x": configs.Input("x", "float32", ("batch", 64))}, {"y": configs.Input("y", "float32", ("batch", 4))}
)


def configured(serving, part="model"):
    config = configs.model_config("tiny", LAYER, backend=Backend.ONNXRUNTIME, batch=8)
    fields.overridden(config, serving, part)
    return config


def test_the_step_refuses_what_only_the_graph_tells_with_its_place():
    serving = Serving(
        model_name="tiny", ensemble="t", fields={"output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [5]}]}
    )
    with pytest.raises(StepError, match=r"cannot be \[5\]: the model has \[4\]") as caught:
        configured(serving)
    assert caught.value.facts[0] == "at package.triton.output.0.dims"


def test_what_is_said_of_the_model_holds_for_both_of_its_graphs_and_a_graph_s_own_word_stands_over_it():
    models = {"decoder": {"instance_group": [{"count": 3}]}}
    serving = Serving(model_name="t", ensemble="e", fields={"instance_group": [{"count": 2}]}, models=models)
    assert [configured(serving, part).instance_group[0].count for part in ("encoder", "decoder")] == [2, 3]
    assert configured(serving, "tokenizer").instance_group[0].count == 1


@pytest.mark.parametrize("groups", [[{"count": 2}], [], None])
def test_a_group_without_a_kind_stays_on_what_the_package_is_for(groups):
    kinds = model_config_pb2.ModelInstanceGroup
    for execution, kind in (("cpu", kinds.KIND_CPU), ("cuda", kinds.KIND_GPU)):
        options = {"execution": executions.execution(execution), "fields": {"instance_group": groups}}
        serving = Serving(model_name="t", ensemble="e", models={"tokenizer": options["fields"]}, **options)
        assert [group.kind for group in configured(serving).instance_group] == [kind]
        assert [group.kind for group in configured(serving, "tokenizer").instance_group] == [kinds.KIND_CPU]


def test_an_override_of_a_model_that_the_package_lacks_is_refused():
    serving = Serving(model_name="t", ensemble="e", models={"postprocess": {"parameters": {}}})
    fields.refuse_unused(serving, ("tokenizer", "postprocess"))
    with pytest.raises(StepError, match="overrides the postprocess, but the package has no such model") as caught:
        fields.refuse_unused(serving, ("tokenizer", "ensemble"))
    assert caught.value.facts == ("models to override: ensemble, tokenizer",)


def test_a_parameter_by_which_clients_find_their_way_cannot_be_changed():
    config = configs.model_config("tiny", LAYER, backend=Backend.ONNXRUNTIME, batch=8)
    config.parameters["recipe_task"].string_value = "tensors"
    for parameters in ({"recipe_task": {"string_value": "other"}}, {"recipe_task": None}, None):
        serving = Serving(model_name="tiny", ensemble="t", fields={"parameters": parameters})
        with pytest.raises(StepError, match="the package"):
            fields.overridden(config, serving, "model")
    same = Serving(model_name="tiny", ensemble="t", fields={"parameters": {"recipe_task": {"string_value": "tensors"}}})
    fields.overridden(config, same, "model")


def test_a_warm_up_may_leave_out_what_is_optional_and_sends_what_clients_send():
    config = configs.model_config("tiny", LAYER, backend=Backend.ONNXRUNTIME, batch=8)
    config.input[0].dims[:] = [1]
    config.input[0].reshape.SetInParent()
    config.input.add(name="LIMIT", data_type="TYPE_INT32", dims=[1], optional=True)
    sample = {"name": "w", "batch_size": 1, "inputs": {"x": {"data_type": "TYPE_FP32", "dims": [1], "zero_data": True}}}
    fields.overridden(config, Serving(model_name="t", ensemble="e", fields={"model_warmup": [sample]}), "model")
    assert len(config.model_warmup) == 1


def test_a_fault_leads_to_its_place():
    about = About(Backend.ONNXRUNTIME, batch=8, inputs={"x": ConfigTensor("TYPE_FP32", (64,))})
    with pytest.raises(Fault) as caught:
        triton.check({"input": [{"name": "y", "data_type": "TYPE_FP32", "dims": [64]}]}, about)
    assert caught.value.path == ("input", 0, "name")
