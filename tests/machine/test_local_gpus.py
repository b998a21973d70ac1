"""Facts about GPUs from a fake CUDA driver, as rows of an engine's key."""

import fake_nvidia
import pytest

from engine.builder import facts
from engine.machine import cuda, local_gpus, tools
from engine.runtimes import requirements
from engine.step import Device, Hardware

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="pyyaml")
ATTRIBUTES = {8: 49152, 16: 40, 18: 0, 32: 1, 37: 256, 38: 4194304, 75: 7, 76: 5, 81: 65536}


class FakeCudaDriver:
    """Answers like libcuda on a machine with one T4, by writing into ctypes references."""

    def __init__(self, *, starts=True, name=b"Tesla T4"):
        self.starts, self.name = starts, name

    def cuInit(self, _flags):  # noqa: N802 - NVIDIA's names
        return 0 if self.starts else 100

    def cuDriverGetVersion(self, version):  # noqa: N802
        version._obj.value = 13000
        return 0

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = 1
        return 0

    def cuDeviceGet(self, handle, number):  # noqa: N802
        handle._obj.value = number
        return 0

    def cuDeviceGetName(self, name, _length, _handle):  # noqa: N802
        name.value = self.name
        return 0

    def cuDeviceTotalMem_v2(self, memory, _handle):  # noqa: N802
        memory._obj.value = 15 << 30
        return 0

    def cuDeviceGetAttribute(self, value, which, _handle):  # noqa: N802
        value._obj.value = ATTRIBUTES[which]
        return 0


@pytest.fixture
def driver(monkeypatch):
    """Let a test choose the driver."""

    def be(fake):
        monkeypatch.setattr(cuda, "library", lambda _name: fake)
        cuda.devices.cache_clear()
        cuda.supported.cache_clear()
        local_gpus.gpus.cache_clear()
        monkeypatch.setenv("PATH", "/nowhere")

    yield be
    cuda.devices.cache_clear()
    cuda.supported.cache_clear()
    local_gpus.gpus.cache_clear()


def test_the_driver_tells_what_an_engine_depends_on(driver):
    driver(FakeCudaDriver())
    names = [
        "device.name", "device.sm", "device.sm_count", "device.memory_bus_width", "device.l2_bytes",
        "device.shared_memory_per_block", "device.shared_memory_per_sm", "device.memory", "device.ecc", "device.mig",
        "device.integrated",
    ]  # fmt: skip
    assert {name: facts.of(name, T4).value for name in names} == {
        "device.name": "Tesla T4", "device.sm": "75", "device.sm_count": "40", "device.memory_bus_width": "256",
        "device.l2_bytes": "4194304", "device.shared_memory_per_block": "49152",
        "device.shared_memory_per_sm": "65536", "device.memory": str(15 << 30), "device.ecc": "true",
        "device.mig": "none", "device.integrated": "false",
    }  # fmt: skip


def test_a_machine_without_nvidia_smi_still_has_the_gpus_that_cuda_sees(driver):
    driver(FakeCudaDriver())
    assert facts.can_run(T4)
    assert not facts.can_run(Hardware(devices=(Device(name="A10", sm=86),), tool="pyyaml"))


def test_a_slice_of_a_gpu_has_its_profile_as_a_row(driver):
    driver(FakeCudaDriver(name=b"NVIDIA A100-SXM4-40GB MIG 1g.5gb"))
    assert local_gpus.gpus()[0].name.endswith("MIG 1g.5gb")
    assert local_gpus._FACTS["device.mig"](local_gpus.gpus()[0]) == "1g.5gb"


@pytest.mark.parametrize("fake", [None, FakeCudaDriver(starts=False)], ids=["no driver", "it does not start"])
def test_without_a_driver_that_works_there_are_no_gpus_and_no_facts_of_them(driver, fake):
    driver(fake)
    assert local_gpus.gpus() == ()
    assert not facts.can_run(T4)
    with pytest.raises(KeyError):
        facts.of("device.name", T4)


def test_a_fact_of_ampere_and_later_is_one_for_all_of_them():
    tell = local_gpus._FACTS["device.ampere_plus"]
    assert tell(local_gpus.LocalGpu("NVIDIA A10", 86, "")) == tell(local_gpus.LocalGpu("NVIDIA L4", 89, ""))
    assert tell(local_gpus.LocalGpu("Tesla T4", 75, "")) == "75"


@pytest.mark.parametrize(("version", "runs"), [(None, True), ("10.x", True), ("10.13", True), ("10.4", False)])
def test_a_tool_of_another_version_than_the_one_that_is_meant_does_not_do(driver, monkeypatch, version, runs):
    driver(FakeCudaDriver())
    monkeypatch.setitem(tools._versions, "tensorrt", "10.13.0.35")
    meant = Hardware(devices=T4.devices, tool="tensorrt", version=version)
    assert facts.can_run(meant) is runs


def test_a_job_that_waits_names_the_versions_that_will_do():
    assert str(Hardware(devices=T4.devices, tool="tensorrt", version="10.x")) == "T4 (sm_75) with tensorrt 10.x"
    assert str(Hardware(devices=T4.devices, tool="tensorrt", version="10.4")) == "T4 (sm_75) with tensorrt 10.4"


class Distribution:
    """An installed distribution, as far as its metadata is read."""

    def __init__(self, name, *requires):
        self.metadata, self.requires, self.version = {"Name": name}, list(requires), "11.1.0.9"


@pytest.fixture
def installed(monkeypatch):
    """Let a test choose the machine, and the distribution that provides TensorRT."""

    def be(machine, *distribution):
        fake_nvidia.install(monkeypatch, machine)
        monkeypatch.setattr(tools, "provider", lambda _: Distribution(*distribution))
        monkeypatch.setitem(tools._versions, "tensorrt", "11.1.0.9")

    yield be
    monkeypatch.undo()
    fake_nvidia.forget()


@pytest.mark.parametrize(
    ("machine", "distribution", "sufficient"),
    [
        ("old_driver", ("tensorrt", "tensorrt_cu13==11.1.0.9"), False),
        ("old_driver", ("tensorrt-cu13",), False),
        ("old_driver", ("tensorrt", "tensorrt_cu12==10.11.0.33"), True),
        ("twins", ("tensorrt", "tensorrt_cu13==11.1.0.9"), True),
        ("old_driver", ("tensorrt",), True),
    ],
)
def test_the_driver_is_compared_with_the_cuda_that_a_package_is_built_for(installed, machine, distribution, sufficient):
    installed(machine, *distribution)
    assert (local_gpus.driver_lacks("tensorrt") is None) is sufficient


def test_a_job_waits_before_it_runs_on_a_driver_that_is_too_old(installed):
    installed("old_driver", "tensorrt", "tensorrt_cu13==11.1.0.9")
    lack = requirements.lack(Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="11.x"))
    assert lack is not None
    assert lack.here == (
        "this machine has Tesla T4 (sm_75), but the driver supports CUDA 12.4, and tensorrt is built for CUDA 13, "
        "which needs driver 580 or later"
    )
