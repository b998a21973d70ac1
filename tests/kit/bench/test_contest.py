"""Contest: the models that a measurement compares in process."""

from types import SimpleNamespace

import executions
import graphs
import models
import pytest

from engine.errors import StepError
from engine.kit.bench.contest import Contest
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.recipe.values import Rival
from engine.runtimes import requirements
from engine.runtimes.execution import Execution

ON_T4 = executions.execution("cuda", hardware=requirements.on(["T4"], tool="onnxruntime-gpu"))
EAGER = Rival(runtime="pytorch")


def contest(rival, exported, checkpoint, execution=None, *, new_tokens=None):
    return Contest(
        validated=exported,
        exported=exported,
        checkpoint=checkpoint,
        execution=execution or Execution(),
        name_of_ours="onnxruntime-fp32",
        in_process=True,
        against=(rival,),
        threads=1,
        new_tokens=new_tokens,
        task=None,
        num_labels=None,
        random_head=False,
        images=None,
        scratch=exported.parent,
    )


def load(rival, exported, checkpoint, execution=None):
    """Return the runner of the only rival."""
    [(_, loaded)] = contest(rival, exported, checkpoint, execution).loads()
    return loaded()


def test_a_model_that_generates_text_and_a_model_on_a_cpu_have_no_cuda_graph(tmp_path):
    assert contest(EAGER, tmp_path, tmp_path, ON_T4).graphed() is not None
    assert contest(EAGER, tmp_path, tmp_path, ON_T4, new_tokens=4).graphed() is None
    assert contest(EAGER, tmp_path, tmp_path).graphed() is None


def test_a_pytorch_without_cuda_is_no_rival_on_a_gpu(tmp_path, monkeypatch):
    import torch

    t4 = SimpleNamespace(name="Tesla T4", sm=75, uuid="")
    monkeypatch.setattr(cuda, "devices", lambda: (t4,))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    checkpoint = models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification")
    with pytest.raises(StepError, match="PyTorch cannot use the Tesla T4") as caught:
        load(EAGER, checkpoint, checkpoint, execution=ON_T4)
    assert "torch" in str(caught.value)


@pytest.mark.parametrize(
    ("rival", "name"),
    [
        ({}, "pytorch-fp32"),
        ({"precision": "tf32"}, "pytorch-tf32"),
        ({"precision": "fp16", "compile": "default"}, "pytorch-fp16-compile"),
        ({"precision": "fp16", "compile": "reduce-overhead"}, "pytorch-fp16-reduce-overhead"),
    ],
)
def test_the_name_of_a_rival_says_its_precision_and_its_compilation(rival, name):
    assert Rival(runtime="pytorch", **rival).name == name


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_pytorch_runs_in_the_precision_of_its_name(tmp_path, precision):
    checkpoint = models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification")
    rival = Rival(runtime="pytorch", precision=precision)
    runner = load(rival, graphs.tiny("bert"), checkpoint)
    original = load(EAGER, graphs.tiny("bert"), checkpoint)
    inputs = bench_inputs.draw(onnx_files.load_graph(graphs.tiny("bert")), {"batch": 1, "sequence": 8})
    assert runner.name == f"pytorch-{precision}"
    lowered, whole = runner.run(inputs)["logits"], original.run(inputs)["logits"]
    assert 0 < abs(lowered - whole).max() < 0.1 * abs(whole).max()
    assert runner.prepare(inputs)() is None
