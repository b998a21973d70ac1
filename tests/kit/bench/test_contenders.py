"""Contenders: the models that a measurement compares in process, and rivals that cannot run."""

from types import SimpleNamespace

import executions
import graphs
import models
import pytest

from engine.errors import StepError
from engine.kit.bench.contenders import BuiltModel, able, loaded, rival_loads
from engine.kit.bench.interleaving import Contender
from engine.kit.bench.report import Unmeasured
from engine.kit.inputs import bench_inputs
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.recipe.values import Rival
from engine.runtimes import registry, requirements
from engine.runtimes.execution import Execution
from engine.runtimes.runner import RivalModel, Runner

ON_T4 = executions.execution("cuda", hardware=requirements.on(["T4"], tool="onnxruntime-gpu"))
EAGER = Rival(runtime="pytorch")


def built(folder, execution=None, *, new_tokens=None):
    return BuiltModel(folder, execution or Execution(), "onnxruntime-fp32", 1, new_tokens)


def load(rival, exported, checkpoint, execution=None):
    """Return the runner of a rival."""
    original = RivalModel(exported=exported, checkpoint=checkpoint, compile=rival.compile, scratch=exported.parent)
    return registry.find(rival.runtime).rival(
        original, name=rival.name, precision=rival.precision, execution=execution or Execution(), threads=1
    )


def test_a_model_that_generates_text_and_a_model_on_a_cpu_have_no_cuda_graph(tmp_path):
    assert built(tmp_path, ON_T4).graphed() is not None
    assert built(tmp_path, ON_T4, new_tokens=4).graphed() is None
    assert built(tmp_path).graphed() is None


def test_a_pytorch_without_cuda_is_no_rival_on_a_gpu(tmp_path, monkeypatch):
    import torch

    t4 = SimpleNamespace(name="Tesla T4", sm=75, uuid="")
    monkeypatch.setattr(cuda, "devices", lambda: (t4,))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    checkpoint = models.checkpoint(tmp_path / "checkpoint", "bert", task="text-classification")
    original = RivalModel(exported=checkpoint, checkpoint=checkpoint)
    contenders, [left_out] = loaded(rival_loads([EAGER], original, ON_T4, threads=1))
    assert contenders == []
    assert "PyTorch cannot use the Tesla T4" in left_out.reason


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


def model(name, error=None):
    def prepare(_inputs):
        if error is not None:
            raise error
        return lambda: None

    return Runner(name, dict, prepare)


def missing():
    raise OSError("libcudart.so.12: cannot open shared object file")


def test_a_rival_whose_libraries_are_missing_is_left_out(capsys):
    contenders, unmeasured = loaded([("a", lambda: model("a")), ("b", missing)])
    assert [each.runtime for each in contenders] == ["a"]
    assert unmeasured == [Unmeasured(runtime="b", reason="libcudart.so.12: cannot open shared object file")]
    assert str(unmeasured[0]) == "b was not measured: libcudart.so.12: cannot open shared object file"
    assert str(unmeasured[0]) in capsys.readouterr().out


def test_an_error_of_the_program_itself_is_not_hidden():
    def broken():
        raise KeyError("x")

    with pytest.raises(KeyError):
        loaded([("a", broken)])


def test_a_rival_that_fails_on_the_inputs_is_left_out_and_the_built_model_is_not_tried():
    broken = StepError("no kernel", ["half"], "take it out")
    ours = Contender.in_process(model("ours", error=broken), ours=True)
    fit, unmeasured = able((ours, Contender.in_process(model("a", error=broken))), {}, {"batch": 1})
    assert fit == [ours]
    assert unmeasured == [Unmeasured(runtime="a", reason="no kernel; half; take it out", shape={"batch": 1})]
