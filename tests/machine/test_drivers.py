"""A driver that is too old for what is installed is named before anything runs."""

import fake_nvidia
import pytest

from engine.machine import drivers, tools
from engine.runtimes import lacking
from engine.step import Device, Hardware


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
    assert (drivers.lacking("tensorrt") is None) is sufficient


def test_a_job_waits_before_it_runs_on_a_driver_that_is_too_old(installed):
    installed("old_driver", "tensorrt", "tensorrt_cu13==11.1.0.9")
    lack = lacking.lack(Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="11.x"))
    assert lack is not None
    assert lack.here == (
        "this machine has Tesla T4 (sm_75), but the driver supports CUDA 12.4, and tensorrt is built for CUDA 13, "
        "which needs driver 580 or later"
    )
