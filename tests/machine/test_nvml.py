"""The identity and the state of GPUs, from recorded answers of NVML and CUDA."""

import importlib
import inspect
import re
from unittest.mock import Mock

import fake_nvidia
import pytest

from engine.builder import facts
from engine.machine import gpu_state, local_gpus, nvml, tools
from engine.runtimes import devices, requirements
from engine.step import Device, Hardware


def on(name, sm):
    return Hardware(devices=(Device(name=name, sm=sm),), tool="pyyaml")


@pytest.fixture
def machine(monkeypatch):
    yield lambda name: fake_nvidia.install(monkeypatch, name)
    monkeypatch.undo()
    fake_nvidia.forget()


def test_a_mig_slice_is_what_cuda_shows_and_not_the_board(machine):
    machine("mig")
    [gpu] = local_gpus.gpus()
    assert (gpu.name, gpu.driver) == ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "570.133.20")
    assert gpu.uuid.startswith("MIG-")
    slice_of = on("A100-40GB MIG 1c.3g.20gb", 80)
    assert facts.can_run(slice_of)
    assert devices.chosen(slice_of).uuid == gpu.uuid
    assert facts.of("device.mig", slice_of).value == "1c.3g.20gb"


def test_a_recipe_for_the_whole_board_waits_on_a_mig_machine_and_is_told_its_slice(machine):
    machine("mig")
    lack = requirements.lack(on("A100-40GB", 80))
    assert lack is not None
    assert lack.here == (
        "this machine has NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb (sm_80); "
        "for it, a recipe says `target.device: A100-40GB MIG 1c.3g.20gb`"
    )


def test_mig_without_slices_and_hidden_boards_are_named(machine):
    machine("mig_without_slices")
    assert "on which MIG is on, and CUDA shows no slice" in requirements.lack(on("A100-40GB", 80)).advice
    machine("hidden")
    assert "Tesla T4, but CUDA shows no GPU" in requirements.lack(on("T4", 75)).advice


def test_of_twin_boards_the_facts_and_the_state_are_those_of_the_one_that_is_used(machine):
    fakes = machine("twins")
    t4 = on("T4", 75)
    used = devices.chosen(t4)
    assert (facts.of("device.ecc", t4).value, facts.of("device.memory", t4).value) == ("true", "15828320256")
    [other] = [gpu for gpu in local_gpus.gpus() if gpu.uuid != used.uuid]
    assert local_gpus._FACTS["device.ecc"](other) == "false"
    report = gpu_state.report(used.name, gpu_state.look(used.name, used.uuid))
    assert (report.sm_mhz, report.celsius, report.watts, report.watt_limit) == ((1245, 1245), (82, 82), (70, 70), 70)
    assert report.throttled == ("power cap", "hot (software slowdown)")
    assert {handle for name, handle in fakes.nvml.questions if "Clock" in name} == {used.uuid}


def test_the_state_of_a_slice_is_that_of_its_board(machine):
    machine("mig")
    [gpu] = local_gpus.gpus()
    report = gpu_state.report(gpu.name, gpu_state.look(gpu.name, gpu.uuid))
    assert (report.driver, report.watts, report.throttled) == ("570.133.20", (212, 212), ("power cap",))


def test_a_vgpu_is_itself_and_what_it_does_not_tell_is_not_known(machine):
    machine("vgpu")
    assert facts.can_run(on("T4-8C", 75))
    assert not facts.can_run(on("T4", 75))
    assert "`target.device: T4-8C`" in requirements.lack(on("T4", 75)).here
    [gpu] = local_gpus.gpus()
    report = gpu_state.report(gpu.name, gpu_state.look(gpu.name, gpu.uuid))
    assert (report.driver, report.sm_mhz, report.watts, report.throttled) == ("550.144.03", None, None, None)


def test_without_the_package_nvml_tells_nothing_and_ctrl_c_during_its_import_is_heard(machine, monkeypatch):
    machine("twins")
    monkeypatch.setattr(
        importlib, "import_module", Mock(side_effect=[ModuleNotFoundError("pynvml"), KeyboardInterrupt])
    )
    assert (nvml.driver(), nvml.boards(), nvml.state("GPU-1")) == (None, (), None)
    nvml.library.cache_clear()
    with pytest.raises(KeyboardInterrupt):
        nvml.driver()


def test_the_package_has_every_function_that_is_called():
    if tools.version_of("nvidia-ml-py") == tools.MISSING:
        pytest.skip("nvidia-ml-py is not installed")
    pynvml = importlib.import_module("pynvml")
    called = set(re.findall(r"nvml(?:Device|System)(?!Queries)[A-Z]\w+|NVML_[A-Z_]+", inspect.getsource(nvml)))
    assert len(called) > 10
    assert [name for name in called if not hasattr(pynvml, name)] == []
