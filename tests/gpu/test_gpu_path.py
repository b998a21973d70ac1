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
from engine.runtimes import requirements

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
    assert [0 < row["p50_ms"] <= row["p99_ms"] for row in variant["bench"] if row["ours"]] == [True] * 3
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
    assert {row["runtime"] for row in variant["bench"]} >= {"onnxruntime-fp32", "pytorch-fp32", "pytorch-fp16"}


def test_a_cuda_graph_is_measured_beside_the_model_and_is_the_default_at_a_fixed_shape(project):
    """One build proves capture, the answers on two inputs, the memory that the driver tells, and the default."""
    need(ORT_CUDA)
    name = "graphs"
    recipe = json.loads(ORT_CUDA.recipe(rivals=False)) | {"name": name}
    recipe["profiles"][0] = {"batch": 1, "sequence": 16}
    recipe["bench"]["shapes"] = [{"batch": 1, "sequence": 16}, {"batch": 8, "sequence": 128}]
    (project / "pyproject.toml").touch()
    (project / "sentences.jsonl").write_bytes((ways.ROOT / "recipes" / "samples" / "sentences.jsonl").read_bytes())
    (project / f"{name}.yaml").write_text(json.dumps(recipe))
    done = ways.command(project, "build", f"{name}.yaml")
    assert done.returncode == 0, done.stderr
    [variant] = json.loads(ways.command(project, "show", f"{name}.yaml", "--json").stdout)
    report = next(step["report"] for step in variant["steps"] if step["job"] == "bench")
    assert report.get("unmeasured", []) == []
    assert [(row["runtime"], row["ours"]) for row in variant["bench"]] == [
        ("onnxruntime-fp32-graph", True), ("onnxruntime-fp32-no-graph", False),
        ("onnxruntime-fp32", True), ("onnxruntime-fp32-graph", False),
    ]  # fmt: skip
    captured = [row["graph"] for row in variant["bench"] if "graph" in row]
    assert len(captured) == 2
    assert all(graph["capture_s"] > 0 and graph["memory_bytes"] > 0 for graph in captured)
    assert done.stdout.count("CUDA graph for") == 2


@pytest.mark.parametrize("way", [ORT_CUDA, NATIVE, RTX], ids=lambda way: way.name)
def test_a_cuda_graph_gives_the_answers_that_the_model_gives_without(project, way):
    need(way)
    done, variant = ways.build(project, way, rivals=False)
    assert done.returncode == 0, done.stderr
    built = artifact(project, variant, "validate")
    graph = onnx_files.load_graph(artifact(project, variant, "export"))
    on = requirements.on([ways.device()], tool=way.tools()[0])
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
        others = {name: np.roll(array, 1, axis=1) for name, array in inputs.items()}
        runner.prepare(inputs)()
        run = runner.run if runner.capture is None else runner.capture(inputs).answers
        answers.append([run(given) for given in (inputs, others)])
    for plain, from_graph in zip(*answers, strict=True):
        for name, array in plain.items():
            np.testing.assert_allclose(array, from_graph[name], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 128), (32, 256)])
def test_every_profile_of_an_engine_serves_its_shapes(project, shape):
    need(NATIVE)
    done, variant = ways.build(project, NATIVE, rivals=False)
    assert done.returncode == 0, done.stderr
    on = requirements.on([ways.device()], tool="tensorrt")
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
