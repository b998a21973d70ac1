"""The models of a built model: one, or several behind a router."""

from pathlib import Path

import executions
import pytest
from text_config import model
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton import fields as triton_fields
from engine.kit.triton import model as triton_model
from engine.kit.triton.serving import Serving
from engine.runtimes.backends import Backend
from engine.runtimes.execution import Execution
from engine.runtimes.served import Graph, Router, Served

FOLDER = Path("built")
SERVING = Serving(model_name="m", ensemble="m_text", execution=Execution(runtime="openvino", options={}))


def openvino(*shape, folder=None):
    return Served(
        Backend.OPENVINO, {"x": Input("x", "float32", shape)}, {"y": Input("y", "float32", shape)}, ("model.xml",),
        folder=folder, joined=False,
    )  # fmt: skip


def several():
    models = {"1x8": openvino(1, 8, folder=Path("fixed")), "free": openvino("batch", "sequence")}
    free = openvino("batch", "sequence")
    return Served(Backend.PYTHON, free.inputs, free.outputs, (), joined=False, router=Router(b"code", {}, models))


def test_one_model_is_called_itself():
    [part], files, signature = triton_model.built(SERVING, openvino("batch", 4), FOLDER)
    assert (part.config.name, part.config.backend) == ("m", "openvino")
    assert (files["m"].folder, files["m"].names) == (FOLDER, ("model.xml",))
    assert signature.batch_axis == "batch"


def test_several_models_stand_behind_a_router_with_the_name_of_the_package():
    listed, files, _ = triton_model.built(SERVING, several(), FOLDER)
    assert [(part.config.name, part.config.backend) for part in listed] == [
        ("m_1x8", "openvino"), ("m_free", "openvino"), ("m", "python")
    ]  # fmt: skip
    assert {name: each.folder for name, each in files.items()} == {"m_1x8": Path("fixed"), "m_free": FOLDER}
    assert set(listed[-1].files) == {"model.py", "route.py", "routing.py", "settings.json"}
    assert listed[0].config.input[0].dims == [1, 8]
    assert listed[-1].config.input[0].dims == [-1, -1]


def test_fields_of_the_recipe_are_those_of_the_models_behind_the_router():
    serving = SERVING.model_copy(update={"fields": {"instance_group": [{"count": 2}]}})
    listed, *_ = triton_model.built(serving, several(), FOLDER)
    assert [part.config.instance_group[0].count for part in listed] == [2, 2, 4]


def test_a_warmup_of_one_shape_is_refused():
    serving = SERVING.model_copy(update={"fields": {"model_warmup": [{"name": "w"}]}})
    with pytest.raises(StepError, match="compiled for several"):
        triton_model.built(serving, several(), FOLDER)


def test_every_group_on_gpus_lists_every_profile_also_one_that_the_recipe_writes():
    config = model(backend=Backend.TENSORRT, gpu=True)
    triton_fields.merge(config, {"instance_group": [{"count": 2}, {"kind": "KIND_GPU", "profile": ["1"]}]})
    triton_model.use_gpus(config, profiles=2)
    assert [list(group.profile) for group in config.instance_group] == [["0", "1"], ["1"]]
    assert {group.kind for group in config.instance_group} == {model_config_pb2.ModelInstanceGroup.KIND_GPU}
    alone = model(backend=Backend.TENSORRT, gpu=True)
    triton_model.use_gpus(alone, profiles=1)
    assert not alone.instance_group[0].profile


def test_a_model_of_a_gpu_is_not_served_on_a_cpu():
    config = model(backend=Backend.TENSORRT, gpu=True)
    groups = {"instance_group": [{"kind": "KIND_CPU"}]}
    serving = Serving(model_name="m", ensemble="e", fields=groups, execution=executions.execution("cuda"))
    with pytest.raises(StepError, match="KIND_CPU: this package is for a GPU"):
        triton_fields.overridden(config, serving, "model")


def graph(usual, least=None):
    return Graph(usual={"input_ids": usual}, least={"input_ids": least or usual})


def test_no_cuda_graph_has_more_rows_than_triton_puts_together():
    config = model(backend=Backend.TENSORRT, gpu=True, batch=4)
    graphs = [graph((8, 16), (1, 1)), graph((4, 16), (1, 1)), graph((8, 32), (8, 1))]
    triton_model.cuda_graphs(config, graphs)
    specs = config.optimization.cuda.graph_spec
    assert [(spec.batch_size, list(spec.input["input_ids"].dim)) for spec in specs] == [(4, [16])]


def test_cuda_graphs_are_captured_for_the_usual_shape_of_each_profile():
    config = model(backend=Backend.TENSORRT, gpu=True)
    triton_model.cuda_graphs(config, [graph((1, 16)), graph((8, 128))])
    cuda = config.optimization.cuda
    assert cuda.graphs
    assert [(spec.batch_size, list(spec.input["input_ids"].dim)) for spec in cuda.graph_spec] == [(1, [16]), (8, [128])]
    whole = model(backend=Backend.TENSORRT, gpu=True, batch=0)
    triton_model.cuda_graphs(whole, [graph((8, 128))])
    spec = whole.optimization.cuda.graph_spec[0]
    assert (spec.batch_size, list(spec.input["input_ids"].dim)) == (0, [8, 128])


def test_an_accelerator_comes_with_its_parameters():
    config = model(gpu=True)
    triton_model.accelerated(config, "tensorrt", {"trt_engine_cache_enable": "1"})
    [accelerator] = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert accelerator.name == "tensorrt"
    assert dict(accelerator.parameters) == {"trt_engine_cache_enable": "1"}
