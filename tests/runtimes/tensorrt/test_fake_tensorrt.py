"""The fake `tensorrt` runs the engines that it builds: it tests the runner of engines without a GPU."""

import engines
import executions
import graphs
import numpy as np
import pytest

from engine.errors import StepError
from engine.recipe.values import Range
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.requirements import on
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import log as trt_log
from engine.runtimes.tensorrt import runner as trt_runner
from engine.steps.trt_build import TrtBuild
from engine.steps.trt_prepare import TrtPrepare

BATCH = {"batch": Range(min=1, opt=2, max=8)}


@pytest.fixture
def engine(fake_tensorrt, tmp_path):
    source = graphs.write(tmp_path / "model", graphs.layers())
    out = tmp_path / "job" / "out"
    out.parent.mkdir()
    prepare = TrtPrepare(profiles=(BATCH, {"batch": Range(min=1, opt=1, max=1)}))
    build = TrtBuild(runtime="tensorrt", devices=("T4",))
    engines.EngineSteps(prepare, build).run(out, checked=source)
    return out / "model.plan"


def loaded(fake_tensorrt, plan):
    trt_api.use("tensorrt")
    logger, log = trt_log.begin()
    return fake_tensorrt.Runtime(logger).deserialize_cuda_engine(plan), log


def test_an_engine_answers_as_onnx_runtime_does(fake_tensorrt, engine):
    cuda_engine, _ = loaded(fake_tensorrt, engine.read_bytes())
    context = cuda_engine.create_execution_context()
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    y = np.zeros((3, 4), np.float32)
    assert context.set_optimization_profile_async(0, 0)
    assert context.set_input_shape("x", x.shape)
    assert tuple(context.get_tensor_shape("y")) == y.shape
    for name, value in (("x", x), ("y", y)):
        assert context.set_tensor_address(name, value.ctypes.data)
    assert context.execute_async_v3(0)
    session = ort.session(engine.parent.parent.parent / "model", threads=1)
    np.testing.assert_allclose(y, session.run(None, {"x": x})[0], rtol=1e-6)


def test_a_shape_outside_of_the_profile_is_refused(fake_tensorrt, engine):
    cuda_engine, log = loaded(fake_tensorrt, engine.read_bytes())
    context = cuda_engine.create_execution_context()
    assert not context.set_input_shape("x", (9, 64))
    assert context.set_optimization_profile_async(1, 0)
    assert not context.set_input_shape("x", (2, 64))
    assert not context.set_optimization_profile_async(2, 0)
    assert not context.execute_async_v3(0)
    assert len(log.problems) == 3


@pytest.mark.parametrize("cuda_graph", [False, True], ids=["", "as a CUDA graph"])
def test_the_runner_of_engines_takes_it(fake_tensorrt, engine, cuda_graph):
    hardware = on(["T4"], tool="tensorrt")
    execution = executions.execution(runtime="tensorrt", hardware=hardware, cuda_graph=cuda_graph)
    runner = trt_runner.runner(engine.parent, execution, name="built")
    x = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
    session = ort.session(engine.parent.parent.parent / "model", threads=1)
    np.testing.assert_allclose(runner.run({"x": x})["y"], session.run(None, {"x": x})[0], rtol=1e-6)
    runner.prepare({"x": x})()
    with pytest.raises(StepError, match="No profile"):
        runner.run({"x": np.zeros((9, 64), np.float32)})


def test_an_engine_of_another_gpu_and_what_is_no_engine_are_not_loaded(fake_tensorrt, engine, monkeypatch):
    monkeypatch.setattr(fake_tensorrt._machine, "gpu", lambda: {"name": "NVIDIA A10", "sm": 86})
    for plan, problem in ((engine.read_bytes(), "incompatible device"), (b"something else", "magic tag")):
        cuda_engine, log = loaded(fake_tensorrt, plan)
        assert cuda_engine is None
        assert problem in log.problems[-1]
