"""The runner of compiled models, with a fake loader: what reaches native code, on which device, and what never does."""

import faulthandler

import fake_nvidia
import numpy as np
import pt2
import pytest
import torch

from engine.errors import StepError
from engine.machine import cuda, local_gpus
from engine.machine.local_gpus import LocalGpu
from engine.runtimes.execution import Execution
from engine.runtimes.inductor import passport
from engine.step import Device, Hardware

ON_CPU = Execution(runtime="inductor", options={})
ON_H100 = Execution(
    runtime="inductor", on_gpu=True, options={},
    hardware=Hardware(devices=(Device(name="H100", sm=90),), tool="torch"),
)  # fmt: skip
TEXT = {name: np.ones((2, 5), np.int32) for name in ("token_type_ids", "attention_mask", "input_ids")}


class FakeLoader:
    """PyTorch's loader of compiled models: it answers zeros, and remembers what it gets."""

    loaders = ()

    def __init__(self, path, name, single_threaded, runners, device):
        FakeLoader.loaders = (*FakeLoader.loaders, self)
        self.path, self.name, self.device, self.given, self.threads = path, name, device, [], []

    def run(self, tensors):
        self.given.append(tensors)
        self.threads.append(torch.get_num_threads())
        return [torch.zeros(len(tensors[0]), 2)]


@pytest.fixture(autouse=True)
def loader(monkeypatch):
    monkeypatch.setattr(FakeLoader, "loaders", ())
    monkeypatch.setattr(torch._C._aoti, "AOTIModelPackageLoader", FakeLoader)
    return FakeLoader


@pytest.fixture
def fake_h100(monkeypatch):
    """The second GPU of this machine is an H100; what is moved there stays in the memory of the CPU."""
    devices = (fake_nvidia.device("NVIDIA L4", 89), fake_nvidia.device(pt2.H100["gpu"], 90))
    moved = []
    monkeypatch.setattr(cuda, "devices", lambda: devices)
    monkeypatch.setattr(cuda, "runtime_version", lambda: pt2.H100["cuda"])
    monkeypatch.setattr(local_gpus, "gpus", lambda: (LocalGpu(pt2.H100["gpu"], 90, "580.65.06"),))
    monkeypatch.setattr(torch.Tensor, "to", lambda self, device: (moved.append(device), self)[1])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda index: moved.append(f"waited for {index}"))
    return moved


def test_inputs_reach_the_code_in_its_order_and_types_whatever_the_order_of_the_names(tmp_path):
    runner = ON_CPU.by.runner(pt2.write(tmp_path / "m"), ON_CPU, threads=1)
    distinct = {name: np.full((2, 5), number, np.int32) for number, name in enumerate(TEXT)}
    assert runner.run({**distinct, "more": np.zeros(3)})["logits"].shape == (2, 2)
    [loaded] = FakeLoader.loaders
    assert [int(each[0, 0]) for each in loaded.given[0]] == [2, 1, 0]
    assert {each.dtype for each in loaded.given[0]} == {torch.int64}
    assert (loaded.path, loaded.name, loaded.device) == (str(tmp_path / "m" / passport.MODEL), "model", -1)


def test_each_call_has_the_stated_threads_and_pytorch_has_its_own_again(tmp_path):
    before = torch.get_num_threads()
    runner = ON_CPU.by.runner(pt2.write(tmp_path / "m"), ON_CPU, threads=before + 3)
    runner.run(TEXT)
    call = runner.prepare(TEXT)
    with runner.active():
        call()
    assert FakeLoader.loaders[0].threads == [before + 3] * 3
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("shape", [(9, 5), (2, 33), (2,)])
def test_shapes_outside_of_the_axes_never_reach_native_code(tmp_path, shape):
    runner = ON_CPU.by.runner(pt2.write(tmp_path / "m"), ON_CPU)
    assert not runner.takes(dict.fromkeys(TEXT, shape))
    with pytest.raises(StepError, match="takes no inputs of these shapes"):
        runner.run({name: np.ones(shape, np.int64) for name in TEXT})
    assert FakeLoader.loaders[0].given == []


def test_nothing_is_loaded_with_the_passport_of_another_machine(tmp_path):
    other = passport.here(None).model_copy(update={"torch": "2.10.0"})
    with pytest.raises(StepError, match="is not for this machine") as caught:
        ON_CPU.by.runner(pt2.write(tmp_path / "m", machine=other), ON_CPU)
    assert caught.value.facts[0].startswith("torch: the model is for 2.10.0, this machine has ")
    assert FakeLoader.loaders == ()


def test_on_a_gpu_the_model_and_its_inputs_go_to_the_gpu_of_the_recipe(tmp_path, fake_h100):
    runner = ON_H100.by.runner(pt2.write(tmp_path / "m", gpu=pt2.H100), ON_H100)
    assert FakeLoader.loaders[0].device == 1
    runner.prepare(TEXT)()
    assert fake_h100 == ["cuda:1"] * 3 + ["waited for 1"]


def test_a_load_on_a_gpu_has_a_limit_of_time_that_ends_the_process(tmp_path, fake_h100, monkeypatch):
    limits = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, exit: limits.append((seconds, exit)))  # noqa: A006
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: limits.append("cancelled"))
    ON_H100.by.runner(pt2.write(tmp_path / "m", gpu=pt2.H100), ON_H100)
    assert limits == [(300, True), "cancelled"]


def test_an_error_of_the_loader_or_of_a_call_is_a_clear_error(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no kernel image is available")

    directory = pt2.write(tmp_path / "m")
    runner = ON_CPU.by.runner(directory, ON_CPU)
    monkeypatch.setattr(FakeLoader, "run", fail)
    with pytest.raises(StepError, match="cannot run on these inputs") as caught:
        runner.run(TEXT)
    assert caught.value.facts[0] == "no kernel image is available"
    monkeypatch.setattr(torch._C._aoti, "AOTIModelPackageLoader", fail)
    with pytest.raises(StepError, match="cannot load the compiled model"):
        ON_CPU.by.runner(directory, ON_CPU)
