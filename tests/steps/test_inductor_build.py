"""The step `inductor-build`: what it compiles, for which device, and what it writes beside the model."""

import models
import numpy as np
import pt2
import pytest
import torch

from engine.errors import JudgementError, StepError
from engine.kit.reference import probes, torch_models
from engine.machine import cuda
from engine.machine.cuda import CudaDevice
from engine.recipe.values import Range
from engine.runtimes import choice
from engine.runtimes.execution import Execution
from engine.runtimes.inductor import compilation, passport
from engine.runtimes.inductor.compilation import Compiled
from engine.step import Device, Hardware
from engine.steps.inductor_build import InductorBuild, InductorReport

ON_CPU = Execution(runtime="inductor", options={})
ON_H100 = Execution(
    runtime="inductor",
    on_gpu=True,
    options={},
    hardware=Hardware(devices=(Device(name="H100", sm=90),), tool="torch"),
)


def profile(**extents):
    return {axis: Range.model_validate(extent) for axis, extent in extents.items()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return models.checkpoint(tmp_path_factory.mktemp("bert") / "model", task="text-classification")


@pytest.fixture
def fake_h100(monkeypatch):
    """A machine whose second GPU is an H100, as CUDA's driver shows it; no kernel runs."""
    boards = (("NVIDIA L4", 89), (pt2.H100["gpu"], 90))
    shown = tuple(
        CudaDevice(**dict.fromkeys(CudaDevice.__dataclass_fields__, 0) | {"name": n, "sm": s, "uuid": n})
        for n, s in boards
    )
    monkeypatch.setattr(cuda, "devices", lambda: shown)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.fixture
def fake_compiler(monkeypatch):
    """AOTInductor, faked: it writes a few bytes, and returns the arguments of each call."""
    calls = []

    def compiled(module, out, **named):
        calls.append((module, named))
        out.write_bytes(pt2.CONTENT)
        whole = pt2.make()
        return Compiled(whole.axes, whole.inputs, whole.outputs)

    monkeypatch.setattr(compilation, "compiled", compiled)
    return calls


def test_a_build_for_a_gpu_compiles_for_the_gpu_of_the_recipe_and_names_it(
    tmp_path, checkpoint, fake_h100, fake_compiler
):
    step = InductorBuild(precision="fp16", execution=ON_H100, profiles=(profile(batch=[1, 2, 8], sequence=16),))
    report = step.run(tmp_path / "out", checkpoint=checkpoint)
    [(module, named)] = fake_compiler
    assert module.input_names == ("input_ids", "attention_mask", "token_type_ids")
    assert (named["device"], named["precision"]) == ("cuda:1", "fp16")
    assert report.device == pt2.H100["gpu"]
    written = passport.load(tmp_path / "out")
    assert (written.machine.gpu, written.machine.sm) == (pt2.H100["gpu"], 90)
    assert written.precision == "fp16"


def test_a_model_that_pytorch_cannot_export_is_refused_unless_the_plan_has_another(tmp_path, checkpoint, monkeypatch):
    def compiled(*_, **named):
        raise compilation.UnfitModuleError("torch.export cannot have the model", ["data-dependent branch"])

    monkeypatch.setattr(compilation, "compiled", compiled)
    step = InductorBuild()
    report = step.run(tmp_path / "out", checkpoint=checkpoint)
    assert (
        choice.refusal(tmp_path / "out")
        == report.refused
        == "torch.export cannot have the model: data-dependent branch"
    )
    with pytest.raises(JudgementError, match="AOTInductor cannot have this model"):
        step.judge(InductorReport.from_json(report.to_json()))
    step.as_candidate().judge(report)
    assert step.as_candidate().options() == step.options()


def test_a_torch_without_cuda_is_an_error_on_the_machine_with_the_gpu(tmp_path, checkpoint, fake_h100, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(StepError, match="PyTorch cannot use the NVIDIA H100") as caught:
        InductorBuild(execution=ON_H100).run(tmp_path / "out", checkpoint=checkpoint)
    assert "install a torch" in caught.value.hint


def test_a_build_without_the_gpu_or_without_a_compiler_is_an_error(tmp_path, checkpoint, monkeypatch):
    with pytest.raises(StepError, match="There is no GPU here"):
        InductorBuild(execution=ON_H100).run(tmp_path / "out", checkpoint=checkpoint)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepError, match=r"compiles with g\+\+") as caught:
        InductorBuild().run(tmp_path / "out", checkpoint=checkpoint)
    assert caught.value.hint == "apt install g++"


@pytest.mark.slow
@pytest.mark.whole("a compilation takes a minute")
@pytest.mark.parametrize(("precision", "most"), [("fp32", 1e-5), ("bf16", 0.1), ("fp16", 0.02)])
def test_each_precision_gives_the_answers_of_the_original_in_float32(tmp_path, checkpoint, precision, most):
    step = InductorBuild(precision=precision, profiles=(profile(batch=[1, 2, 8], sequence=[1, 16, 64]),))
    step.run(tmp_path / "out", checkpoint=checkpoint)
    runner = ON_CPU.by.runner(tmp_path / "out", ON_CPU, threads=1)
    module = torch_models.load(checkpoint, "text-classification")
    for what, inputs in probes.probes(module, 64):
        expected, answer = torch_models.call(module, inputs)["logits"], runner.run(inputs)["logits"]
        assert answer.dtype == np.float32
        assert np.abs(answer - expected).max() < most, what


@pytest.mark.slow
@pytest.mark.whole("a compilation takes a minute")
def test_a_profile_of_one_size_is_compiled_for_this_size_alone(tmp_path, checkpoint):
    step = InductorBuild(profiles=(profile(batch=1, sequence=16),))
    assert step.run(tmp_path / "out", checkpoint=checkpoint).axes == {}
    assert not list(tmp_path.glob("inductor-*")), "the caches of the compilation are gone"
    runner = ON_CPU.by.runner(tmp_path / "out", ON_CPU, threads=1)
    assert runner.takes(dict.fromkeys(passport.load(tmp_path / "out").inputs, (1, 16)))
    assert not runner.takes(dict.fromkeys(passport.load(tmp_path / "out").inputs, (1, 15)))
