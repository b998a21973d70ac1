"""The runner of a TensorRT engine: its calls and their order with a fake GPU, and the real bindings without a GPU."""

import gc
import platform
import sys

import executions
import fake_gpu
import fake_nvidia
import numpy as np
import passports
import pytest

from engine.errors import StepError
from engine.machine import cuda
from engine.runtimes import requirements
from engine.runtimes.tensorrt import cudart, passport
from engine.runtimes.tensorrt import log as trt_log

NARROW, WIDE = ((1, 4), (1, 4), (1, 4)), ((1, 4), (8, 4), (32, 4))
T4 = fake_nvidia.device("Tesla T4")


def execution(kind="tensorrt", **options):
    tool = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}[kind]
    return executions.execution(runtime=kind, hardware=requirements.on(["T4"], tool=tool), **options)


def artifact(directory, *, plan=b"engine", **fields):
    """Write an engine that was built for this machine, but for the fields of its passport that differ."""
    (directory / passport.PLAN).write_bytes(plan)
    here = {"os": platform.system(), "arch": platform.machine(), "bytes": len(b"engine")}
    passport.save(directory, passports.make(**here | fields))
    return directory


@pytest.fixture
def fake(monkeypatch):
    """Return a function that makes a fake machine with a T4."""

    def make(*profiles, kind="tensorrt", counts=False, memory=1 << 30):
        runtime = fake_gpu.Runtime(memory=memory)
        engine = fake_gpu.Engine(runtime, profiles=profiles or (NARROW, WIDE), counts=counts)
        module = fake_gpu.tensorrt(engine, itself=kind == "tensorrt-rtx")
        trt_log._logger.cache_clear()
        monkeypatch.setattr(cuda, "devices", lambda: (T4,))
        monkeypatch.setattr(cudart, "runtime", lambda: runtime)
        monkeypatch.setitem(sys.modules, {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}[kind], module)
        return runtime, engine

    yield make
    trt_log._logger.cache_clear()


def x(rows):
    return {"x": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) - 3, "unused": np.zeros(1)}


def test_an_engine_answers_by_name_and_only_with_what_it_gives(fake, tmp_path):
    fake()
    runner = executions.built(artifact(tmp_path), execution())
    for rows in (3, 1):
        answers = runner.run(x(rows))
        assert list(answers) == ["y"]
        assert np.array_equal(answers["y"], 2 * x(rows)["x"])


def test_the_profile_is_the_one_whose_usual_shape_is_nearest(fake, tmp_path):
    runtime, engine = fake()
    runner = executions.built(artifact(tmp_path), execution())
    for rows in (1, 8, 32, 1):
        runner.run(x(rows))
    assert [line[-1] for line in runtime.diary if line.startswith("run")] == ["0", "1", "1", "0"]
    assert len(engine.contexts) == 2


def test_a_shape_that_no_profile_takes_is_told_with_all_that_they_take(fake, tmp_path):
    fake()
    with pytest.raises(StepError, match="No profile of the engine takes these shapes") as caught:
        executions.built(artifact(tmp_path), execution()).run(x(33))
    assert "x: [33, 4]" in str(caught.value)
    assert "profile 1, x: (1, 4) to (32, 4)" in str(caught.value)


def test_a_cuda_graph_is_captured_once_per_shape_and_launched(fake, tmp_path):
    runtime, _ = fake()
    runner = executions.built(artifact(tmp_path), execution(cuda_graph=True))
    small, large = runner.prepare(x(1)), runner.prepare(x(9))
    runtime.diary.clear()
    small()
    large()
    assert runtime.diary == ["launch", "wait", "launch", "wait"]


def test_tensorrt_rtx_is_told_to_capture_by_itself(fake, tmp_path):
    runtime, engine = fake(kind="tensorrt-rtx")
    runner = executions.built(artifact(tmp_path, kind="tensorrt-rtx"), execution("tensorrt-rtx", cuda_graph=True))
    call = runner.prepare(x(2))
    assert engine.contexts[0].config.cuda_graph_strategy == "whole"
    runtime.diary.clear()
    call()
    assert runtime.diary == ["run (2, 4) on profile 1", "wait"]


def test_what_is_timed_runs_and_waits_and_calls_that_share_a_context_find_their_own_tensors(fake, tmp_path):
    runtime, engine = fake()
    runner = executions.built(artifact(tmp_path), execution())
    first = runner.prepare(x(2))
    runner.prepare(x(3))
    runtime.diary.clear()
    first()
    assert runtime.diary == ["run (2, 4) on profile 1", "wait"]
    assert len(engine.contexts) == 1


def test_an_output_whose_size_only_running_tells_gets_its_memory_then(fake, tmp_path):
    runtime, _ = fake(counts=True)
    runner = executions.built(artifact(tmp_path), execution(cuda_graph=True))
    assert np.array_equal(runner.run(x(3))["found"], x(3)["x"][x(3)["x"] > 0])
    call = runner.prepare(x(3))
    runtime.diary.clear()
    call()
    assert "launch" not in runtime.diary  # memory cannot be asked for in a graph


def test_memory_is_given_back_with_the_runner(fake, tmp_path):
    runtime, engine = fake()
    before = runtime.left
    runner = executions.built(artifact(tmp_path), execution(cuda_graph=True))
    call = runner.prepare(x(4))
    assert runtime.left < before
    del runner, call
    engine.contexts.clear()
    gc.collect()
    assert runtime.left == before
    assert runtime.blocks == {}


def test_too_little_memory_is_told_in_cuda_s_words_with_a_way_out(fake, tmp_path):
    fake(memory=16)
    with pytest.raises(StepError, match="CUDA refused") as caught:
        executions.built(artifact(tmp_path), execution()).run(x(30))
    assert "cudaErrorMemoryAllocation: said CUDA" in str(caught.value)
    assert "smaller batches" in caught.value.hint


def test_a_plan_that_tensorrt_does_not_take_is_told_in_its_words(fake, tmp_path):
    fake()
    with pytest.raises(StepError, match="cannot load the engine") as caught:
        executions.built(artifact(tmp_path, plan=b"broken"), execution())
    assert "the magic tag does not match" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "shown"), [({"gpu": ("NVIDIA A10",)}, "NVIDIA A10"), ({"tensorrt": "10.9.0.34"}, "10.9")]
)
def test_an_engine_with_another_machine_s_passport_is_not_loaded(fake, tmp_path, field, shown):
    runtime, _ = fake()
    with pytest.raises(StepError, match="is not for this machine") as caught:
        executions.built(artifact(tmp_path, **field), execution())
    assert shown in str(caught.value)
    assert runtime.diary == []


def test_an_engine_without_its_weights_is_not_run(fake, tmp_path):
    fake()
    with pytest.raises(StepError, match=r"without its weights \(strip_plan\)"):
        executions.built(artifact(tmp_path, options={"strip_plan": True}), execution())


def test_a_missing_input_and_one_of_another_kind_are_told_by_name(fake, tmp_path):
    fake()
    runner = executions.built(artifact(tmp_path), execution())
    with pytest.raises(StepError, match="inputs that are not there: x"):
        runner.run({"z": np.zeros(1)})
    with pytest.raises(StepError, match="does not take the input x") as caught:
        runner.run({"x": np.array([["a"] * 4])})
    assert "float32" in str(caught.value)
    assert runner.run({"x": np.ones((2, 4))})["y"].dtype == np.float32


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
@pytest.mark.parametrize("kind", ["tensorrt", "tensorrt-rtx"])
def test_without_a_gpu_an_engine_is_run_by_nothing(tmp_path, kind):
    with pytest.raises(StepError, match="There is no GPU here that CUDA programs can use") as caught:
        executions.built(artifact(tmp_path, kind=kind), execution(kind))
    assert "T4 (sm_75)" in str(caught.value)


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
def test_without_a_driver_the_real_cuda_runtime_says_so():
    pytest.importorskip("cuda.bindings.runtime", reason="cuda-bindings is not installed (the extra `rtx`)")
    with pytest.raises(StepError, match="CUDA refused") as caught:
        cudart.CudaStream()
    assert "cudaError" in str(caught.value)
    with pytest.raises(StepError, match="CUDA refused"):
        cudart.DeviceMemory(16)


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
def test_the_real_tensorrt_rtx_refuses_what_is_no_engine(tmp_path, monkeypatch):
    pytest.importorskip("tensorrt_rtx", reason="tensorrt-rtx is not installed (the extra `rtx`)")
    from engine.runtimes.tensorrt import api as trt_api
    from engine.runtimes.tensorrt import runner as trt_runner

    assert trt_api.use("tensorrt-rtx")
    with pytest.raises(StepError, match="cannot load the engine") as caught:
        trt_runner._Engine(b"x" * 100, cuda_graph=False)
    assert "erialization" in str(caught.value)


def test_without_the_bindings_the_way_to_them_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", None)
    with pytest.raises(StepError, match="needs cuda-bindings"):
        cudart.runtime()


def test_the_fake_has_only_calls_that_the_real_runtime_has():
    real = pytest.importorskip("cuda.bindings.runtime", reason="cuda-bindings is not installed (the extra `rtx`)")
    assert [name for name in dir(fake_gpu.Runtime) if name.startswith("cuda") and not hasattr(real, name)] == []
    assert real.cudaMemcpyKind.cudaMemcpyHostToDevice == fake_gpu.Runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    assert [status.name for status in fake_gpu.Status if getattr(real.cudaError_t, status.name) != status] == []
