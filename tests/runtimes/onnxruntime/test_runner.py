"""ONNX Runtime on a GPU, up to what needs one."""

import subprocess
import sys

import executions
import fake_cuda_provider
import fake_nvidia
import graphs
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.recipe.schema import ModelSection, Recipe, TargetSection
from engine.recipe.values import Range
from engine.runtimes import devices, requirements
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import runner as ort_runner
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import tensorrt_provider as ort_tensorrt

T4 = requirements.on(["T4"], tool="onnxruntime-gpu")
IDS = {"input_ids": onnx_files.Input("input_ids", "int64", ("batch", "sequence"))}


def span(least, usual, most):
    return Range(min=least, opt=usual, max=most)


def recipe(**target):
    profiles = ({"batch": [1, 8, 32], "sequence": [1, 128, 512]},)
    options = {"cuda_graph": True, "optimization_level": 4, "memory_pool": {"workspace": 2 << 30}}
    section = TargetSection(**target)
    tensorrt = options if section.provider == "tensorrt" or section.runtime == "tensorrt" else {}
    return Recipe(name="m", model=ModelSection(source="x"), target=section, profiles=profiles, tensorrt=tensorrt)


def gpus(monkeypatch, *names):
    """Let the driver show GPUs of these names, which are not there."""
    monkeypatch.setattr(cuda, "devices", lambda: tuple(map(fake_nvidia.device, names)))


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
@pytest.mark.parametrize("provider", ["cuda", "tensorrt"])
def test_without_a_gpu_no_runner_is_made_whatever_onnx_runtime_says(tmp_path, monkeypatch, provider):
    graphs.write(tmp_path, graphs.layers())
    known = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: known)
    for make in (executions.built, executions.plain):
        with pytest.raises(StepError, match="There is no GPU here that CUDA programs can use"):
            make(tmp_path, executions.execution(provider=provider, hardware=T4), name="ours", threads=1)


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here, on which the CUDA provider may run")
@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_gpu_without_what_onnx_runtime_needs_for_it_gives_no_cpu_numbers(tmp_path, monkeypatch):
    graphs.write(tmp_path, graphs.layers())
    gpus(monkeypatch, "Tesla T4")
    for make in (executions.built, executions.plain):
        with pytest.raises(StepError, match="does not run on CUDAExecutionProvider here"):
            make(tmp_path, executions.execution(provider="cuda", hardware=T4), name="ours", threads=1)


def test_the_gpu_is_the_recipe_s_one_among_several(monkeypatch):
    gpus(monkeypatch, "NVIDIA A10", "Tesla T4")
    assert devices.chosen(T4) == devices.CudaGpu(1, "Tesla T4", 75, "Tesla T4")
    gpus(monkeypatch, "NVIDIA A10")
    with pytest.raises(StepError) as caught:
        devices.chosen(T4)
    assert "No GPU here is the recipe's: T4 (sm_75) with onnxruntime-gpu" in str(caught.value)
    assert "CUDA shows NVIDIA A10" in str(caught.value)


def test_inputs_and_outputs_stay_bound_between_calls(tmp_path):
    """The calls of I/O binding, made for real in the CPU's memory."""
    session = ort.session(graphs.write(tmp_path, graphs.layers()))
    inputs = {"x": np.ones((3, 64), np.float32)}
    call = ort_runner.bound(session, inputs, memory=("cpu", 0), graph=None)
    assert call.run() is None
    assert call.run() is None
    others = {"x": np.full((3, 64), 0.5)}
    np.testing.assert_array_equal(call.answers(others)["y"], ort.run(session, others)["y"])


def test_a_captured_call_is_captured_once_and_answers_new_inputs(tmp_path, monkeypatch):
    device = fake_cuda_provider.install(monkeypatch)
    runner = executions.built(
        graphs.write(tmp_path, graphs.layers()), executions.execution("cuda", hardware=T4, cuda_graph=True)
    )
    inputs, others = ({"x": np.full((3, 64), value, np.float32)} for value in (1, 2))
    call = runner.capture(inputs)
    call.run()
    for given in (others, inputs):
        np.testing.assert_array_equal(call.answers(given)["y"], runner.run(given)["y"])
    assert device.diary == ["open with graphs", "capture 1", *["replay 1"] * 3]
    runner.capture({"x": np.ones((4, 64), np.float32)})
    assert device.diary[-1] == "capture 2", "each shape has a graph of its own"
    with pytest.raises(StepError, match="cannot run the model on other inputs"):
        call.answers({"x": np.ones((4, 64), np.float32)})


def test_without_cuda_graphs_no_call_is_captured(tmp_path, monkeypatch):
    device = fake_cuda_provider.install(monkeypatch)
    runner = executions.built(graphs.write(tmp_path, graphs.layers()), executions.execution("cuda", hardware=T4))
    runner.prepare({"x": np.ones((3, 64), np.float32)})()
    assert runner.capture is None
    assert device.diary == ["open without graphs"]


def test_profiles_span_into_one_since_the_provider_stays_on_the_first():
    profiles = (
        {"batch": span(1, 1, 1), "sequence": span(1, 16, 128)},
        {"batch": span(1, 8, 32), "sequence": span(1, 128, 512)},
    )
    assert ort_tensorrt.options(IDS, executions.execution(provider="tensorrt", profiles=profiles)) == {
        "trt_profile_min_shapes": "input_ids:1x1",
        "trt_profile_opt_shapes": "input_ids:1x16",
        "trt_profile_max_shapes": "input_ids:32x512",
    }


def test_the_provider_gets_the_values_of_shape_tensors_in_place_of_their_shapes():
    """The optimum is the maximum: some versions exchange the two (microsoft/onnxruntime, pull request 32415)."""
    profiles = [
        {"n": [1, 2, 4], "target": [[-1, 16], [2, 16], [4, 32]]},
        {"n": [4, 6, 8], "target": [[1, 8], [6, 8], [6, 64]]},
    ]
    inputs = {
        "x": onnx_files.Input("x", "float32", ("n", 16)),
        "target": onnx_files.Input("target", "int64", (2,)),
    }
    target = {"device": "T4", "runtime": "onnxruntime", "provider": "tensorrt"}
    stated, silent = (
        Execution.for_recipe(Recipe(name="m", model={"source": "m.onnx"}, target=target, profiles=each))
        for each in (profiles, [{"n": each["n"]} for each in profiles])
    )
    assert "shape_values" not in silent.options
    assert ort_tensorrt.options(inputs, stated) == {
        "trt_profile_min_shapes": "x:1x16,target:-1x8",
        "trt_profile_opt_shapes": "x:2x16,target:6x64",
        "trt_profile_max_shapes": "x:8x16,target:6x64",
    }
    of_a_number = {**stated.options, "profiles": [], "shape_values": [{"limit": {"min": [1], "opt": [4], "max": [9]}}]}
    limit = {"limit": onnx_files.Input("limit", "int64", ())}
    ranges = ort_tensorrt.options(limit, stated.model_copy(update={"options": of_a_number}))
    assert list(ranges.values()) == ["limit:1", "limit:9", "limit:9"]


@pytest.mark.parametrize(("dtype", "strict"), [("float16", "1"), ("float32", None)])
def test_the_cuda_provider_sums_in_fp32_where_normalizations_are_in_fp16(tmp_path, monkeypatch, dtype, strict):
    gpus(monkeypatch, "Tesla T4")
    model = graphs.write(tmp_path, graphs.residual(dtype))
    options = ort_runner.provider_of(model, executions.execution(provider="cuda", hardware=T4)).options
    assert options.get("enable_skip_layer_norm_strict_mode") == strict


def test_a_weakly_typed_provider_is_given_the_precision_of_the_graph(tmp_path, monkeypatch):
    gpus(monkeypatch, "Tesla T4")
    model = graphs.layers()
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    execution = executions.execution(provider="tensorrt", hardware=T4, profiles=({"batch": span(1, 8, 32)},))
    for version, given in (("1.31.1", "1"), ("1.24.4", None)):
        monkeypatch.setattr("onnxruntime.__version__", version)
        options = ort_runner.provider_of(graphs.write(tmp_path / version, model), execution).options
        assert options.get("trt_fp16_enable") == given


def test_options_are_said_only_where_the_recipe_says_them_and_never_a_precision():
    fixed = {"x": onnx_files.Input("x", "float32", (1, 3))}
    assert ort_tensorrt.options(fixed, executions.execution(provider="tensorrt")) == {}
    execution = executions.execution(provider="tensorrt", workspace=1 << 30, optimization_level=5, cuda_graph=True)
    assert ort_tensorrt.options(fixed, execution) == {
        "trt_max_workspace_size": "1073741824",
        "trt_builder_optimization_level": "5",
        "trt_cuda_graph_enable": "1",
    }


def test_a_recipe_says_how_its_model_is_run():
    assert Execution.for_recipe(recipe()) == Execution()
    assert Execution.for_recipe(recipe(device="T4", provider="cpu")) == Execution()
    on_cuda = Execution.for_recipe(recipe(device="T4"))
    assert on_cuda == executions.execution(provider="cuda", hardware=T4)
    assert on_cuda.tools == ("numpy", "onnxruntime-gpu")
    assert "cpu.isa" not in on_cuda.facts
    assert {"device.name", "gpu.driver"} <= set(on_cuda.facts)
    behind = Execution.for_recipe(recipe(device="T4", provider="tensorrt"))
    provider_options = {name: behind.options[name] for name in ("cuda_graph", "workspace", "optimization_level")}
    assert provider_options == {"cuda_graph": True, "workspace": 2 << 30, "optimization_level": 4}
    assert behind.tools == ("numpy", "onnxruntime-gpu")
    assert "tensorrt.version" in behind.facts
    assert "tensorrt.version" not in on_cuda.facts
    native = Execution.for_recipe(recipe(device="T4", runtime="tensorrt"))
    assert (native.runtime, native.on_gpu, native.options) == ("tensorrt", True, {"cuda_graph": True})
    assert native.tools == ("numpy", "tensorrt")


def test_the_cpu_s_part_reaches_nothing_of_tensorrt():
    """What a CPU session needs must not change its key when the TensorRT part does."""
    code = "import sys, engine.runtimes.onnxruntime.session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    reached = [name for name in done.stdout.split() if name.startswith("engine.runtimes.")]
    assert reached
    assert not [name for name in reached if name.startswith("engine.runtimes.tensorrt")]
