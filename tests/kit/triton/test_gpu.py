"""The fields of a configuration for GPUs: instances, profiles, CUDA graphs, accelerators."""

import executions
import pytest
from text_config import model
from tritonclient.grpc import model_config_pb2

from engine.errors import StepError
from engine.kit.triton import fields as triton_fields
from engine.kit.triton import gpu as triton_gpu
from engine.kit.triton.serving import Serving
from engine.runtimes.backends import Backend
from engine.runtimes.served import Graph


def test_every_group_on_gpus_lists_every_profile_also_one_that_the_recipe_writes():
    config = model(backend=Backend.TENSORRT, gpu=True)
    triton_fields.merge(config, {"instance_group": [{"count": 2}, {"kind": "KIND_GPU", "profile": ["1"]}]})
    triton_gpu.finish(config, profiles=2)
    assert [list(group.profile) for group in config.instance_group] == [["0", "1"], ["1"]]
    assert {group.kind for group in config.instance_group} == {model_config_pb2.ModelInstanceGroup.KIND_GPU}
    alone = model(backend=Backend.TENSORRT, gpu=True)
    triton_gpu.finish(alone, profiles=1)
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
    triton_gpu.cuda_graphs(config, graphs)
    specs = config.optimization.cuda.graph_spec
    assert [(spec.batch_size, list(spec.input["input_ids"].dim)) for spec in specs] == [(4, [16])]


def test_cuda_graphs_are_captured_for_the_usual_shape_of_each_profile():
    config = model(backend=Backend.TENSORRT, gpu=True)
    triton_gpu.cuda_graphs(config, [graph((1, 16)), graph((8, 128))])
    cuda = config.optimization.cuda
    assert cuda.graphs
    assert [(spec.batch_size, list(spec.input["input_ids"].dim)) for spec in cuda.graph_spec] == [(1, [16]), (8, [128])]
    whole = model(backend=Backend.TENSORRT, gpu=True, batch=0)
    triton_gpu.cuda_graphs(whole, [graph((8, 128))])
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
