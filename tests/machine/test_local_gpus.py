"""Facts about GPUs from recorded answers of CUDA and NVML, as rows of an engine's key."""

from types import SimpleNamespace

import fake_nvidia
import pytest

from engine.builder import facts
from engine.machine import cuda, local_gpus, tools
from engine.runtimes import requirements
from engine.step import Device, Hardware

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="pyyaml")


@pytest.fixture
def machine(monkeypatch):
    yield lambda name: fake_nvidia.install(monkeypatch, name)
    monkeypatch.undo()
    fake_nvidia.forget()


def test_the_driver_tells_what_an_engine_depends_on(machine):
    machine("old_driver")
    told = {
        "device.name": "Tesla T4", "device.sm": "75", "device.sm_count": "40", "device.memory_bus_width": "256",
        "device.l2_bytes": "4194304", "device.shared_memory_per_block": "49152",
        "device.shared_memory_per_sm": "65536", "device.memory": "15828320256", "device.ecc": "true",
        "device.mig": "none", "device.integrated": "false",
    }  # fmt: skip
    assert {name: facts.of(name, T4).value for name in told} == told
    assert facts.can_run(T4)
    assert not facts.can_run(Hardware(devices=(Device(name="A10", sm=86),), tool="pyyaml"))


@pytest.mark.parametrize("driver", [None, SimpleNamespace(cuInit=lambda _flags: 100)], ids=["none", "does not start"])
def test_without_a_driver_that_works_there_are_no_gpus_and_no_facts_of_them(machine, monkeypatch, driver):
    machine("hidden")
    monkeypatch.setattr(cuda, "library", lambda _name: driver)
    assert local_gpus.gpus() == ()
    assert not facts.can_run(T4)
    with pytest.raises(KeyError):
        facts.of("device.name", T4)


def test_a_fact_of_ampere_and_later_is_one_for_all_of_them():
    tell = local_gpus._FACTS["device.ampere_plus"]
    assert tell(local_gpus.LocalGpu("NVIDIA A10", 86, "")) == tell(local_gpus.LocalGpu("NVIDIA L4", 89, ""))
    assert tell(local_gpus.LocalGpu("Tesla T4", 75, "")) == "75"


@pytest.mark.parametrize(("version", "runs"), [(None, True), ("10.x", True), ("10.13", True), ("10.4", False)])
def test_a_tool_of_another_version_than_the_one_that_is_meant_does_not_do(machine, monkeypatch, version, runs):
    machine("twins")
    monkeypatch.setitem(tools._versions, "tensorrt", "10.13.0.35")
    meant = Hardware(devices=T4.devices, tool="tensorrt", version=version)
    assert facts.can_run(meant) is runs
    assert str(meant) == f"T4 (sm_75) with tensorrt{f' {version}' if version else ''}"


def provided_by(monkeypatch, name, *requires):
    """Let TensorRT 11.1 be installed by a distribution of this name, as far as its metadata is read."""
    described = SimpleNamespace(metadata={"Name": name}, requires=list(requires), version="11.1.0.9")
    monkeypatch.setattr(tools, "provider", lambda _: described)
    monkeypatch.setitem(tools._versions, "tensorrt", "11.1.0.9")


@pytest.mark.parametrize(
    ("name", "distribution", "sufficient"),
    [
        ("old_driver", ("tensorrt-cu13",), False),
        ("old_driver", ("tensorrt", "tensorrt_cu12==10.11.0.33"), True),
        ("twins", ("tensorrt", "tensorrt_cu13==11.1.0.9"), True),
        ("old_driver", ("tensorrt",), True),
    ],
)
def test_the_driver_is_compared_with_the_cuda_of_a_package(machine, monkeypatch, name, distribution, sufficient):
    machine(name)
    provided_by(monkeypatch, *distribution)
    assert (local_gpus.driver_lacks("tensorrt") is None) is sufficient


def test_a_job_waits_before_it_runs_on_a_driver_that_is_too_old(machine, monkeypatch):
    machine("old_driver")
    provided_by(monkeypatch, "tensorrt", "tensorrt_cu13==11.1.0.9")
    lack = requirements.lack(Hardware(devices=T4.devices, tool="tensorrt", version="11.x"))
    assert lack.here == (
        "this machine has Tesla T4 (sm_75), but the driver supports CUDA 12.4, and tensorrt is built for CUDA 13, "
        "which needs driver 580 or later"
    )


@pytest.mark.parametrize(("status", "free"), [(None, None), (0, 14 << 30), (201, None)])
def test_the_free_memory_is_the_driver_s_or_not_known(monkeypatch, status, free):
    """libcuda answers with the error 201 where the thread has no context yet."""

    def tell(free, total):
        if not status:
            free._obj.value, total._obj.value = 14 << 30, 15 << 30
        return status

    driver = None if status is None else SimpleNamespace(cuMemGetInfo_v2=tell)
    monkeypatch.setattr(cuda, "library", lambda _name: driver)
    assert cuda.free_memory() == free
