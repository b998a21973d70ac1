"""The complete way of a model onto a GPU and back: built, validated, measured and packaged by the real command line.

    pytest -m gpu -rs

Nothing here is faked. Where something is missing the test is skipped and says what.
"""

import json
from pathlib import Path

import executions
import gpu_ways as ways
import numpy as np
import pytest

from engine.errors import StepError
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.runtimes import hardware

pytestmark = pytest.mark.gpu

ORT_CUDA = ways.Way("onnxruntime", "fp32", "cuda")
NATIVE, RTX = ways.Way("tensorrt", "fp16"), ways.Way("tensorrt-rtx", "fp16")


def need(way):
    if (reason := way.missing()) is not None:
        pytest.skip(f"{way.name}: {reason}")


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """One project for all ways, so that they share what is the same."""
    return tmp_path_factory.mktemp("gpu")


@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.name)
def test_a_model_is_built_validated_measured_and_packaged_on_the_gpu(project, way):
    need(way)
    done, variant = ways.build(project, way, rivals=False)
    assert done.returncode == 0, done.stderr
    assert variant["validation"]["cosine"]["worst"] >= 0.999
    bench = next(step["report"] for step in variant["steps"] if step["job"] == "bench")
    assert bench["gpu"]["name"] == ways.cuda.devices()[0].name
    assert [0 < row["p50_ms"] <= row["p99_ms"] for row in variant["bench"]] == [True] * 3
    assert (project / "build" / way.name).is_dir()
    again = ways.command(project, "build", f"{way.name}.yaml", "--json")
    states = {event["state"] for event in map(json.loads, again.stdout.splitlines()) if event["event"] == "end"}
    assert states == {"cached"}


def test_pytorch_on_the_gpu_is_measured_beside_it(project):
    need(ORT_CUDA)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip(f"torch {torch.__version__} cannot use the GPU")
    done, variant = ways.build(project, ORT_CUDA)
    assert done.returncode == 0, done.stderr
    assert {row["runtime"] for row in variant["bench"]} == {"onnxruntime-fp32", "pytorch-fp32", "pytorch-fp16"}


@pytest.mark.parametrize("way", [ORT_CUDA, NATIVE, RTX], ids=lambda way: way.name)
def test_a_cuda_graph_gives_the_answers_that_the_model_gives_without(project, way):
    need(way)
    done, variant = ways.build(project, way, rivals=False)
    assert done.returncode == 0, done.stderr
    built = artifact(project, variant, "validate")
    graph = onnx_files.load_graph(artifact(project, variant, "export"))
    on = hardware.on([ways.device()], tool=way.tools()[0])
    answers = []
    for captured in (False, True):
        execution = executions.execution(way.provider, runtime=way.runtime, hardware=on, cuda_graph=captured)
        try:
            runner = executions.built(built, execution)
        except StepError as error:
            if captured and "graph capture" in str(error):  # shape arithmetic on the CPU stands in its way
                pytest.skip(f"{way.name}: {error}")
            raise
        inputs = bench_inputs.draw(graph, {"batch": 1, "sequence": 16})
        runner.prepare(inputs)()
        answers.append(runner.run(inputs))
    for name, array in answers[0].items():
        np.testing.assert_allclose(array, answers[1][name], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 128), (32, 256)])
def test_every_profile_of_an_engine_serves_its_shapes(project, shape):
    need(NATIVE)
    done, variant = ways.build(project, NATIVE, rivals=False)
    assert done.returncode == 0, done.stderr
    on = hardware.on([ways.device()], tool="tensorrt")
    execution = executions.execution(runtime="tensorrt", hardware=on)
    runner = executions.built(artifact(project, variant, "validate"), execution)
    graph = onnx_files.load_graph(artifact(project, variant, "export"))
    inputs = bench_inputs.draw(graph, dict(zip(("batch", "sequence"), shape, strict=True)))
    answer = next(iter(runner.run(inputs).values()))
    assert answer.shape[:2] == shape
    assert np.isfinite(answer).all()


def artifact(project: Path, variant: dict, job: str) -> Path:
    """Return what a job made."""
    return project / "cache" / "artifacts" / next(step["artifact"] for step in variant["steps"] if step["job"] == job)
