"""The fact `tensorrt.version` for ONNX Runtime's TensorRT provider is the version of the libraries that it loads."""

import pytest

from engine.builder import facts
from engine.machine import shared_libraries, tools
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES
from engine.step import Device, Hardware

PROVIDER = Hardware(devices=(Device(name="T4", sm=75),), tool="onnxruntime-gpu", libraries=TENSORRT_LIBRARIES)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setattr(shared_libraries, "_CACHE", str(tmp_path / "no-cache"))
    return tmp_path


def test_a_library_of_the_system_says_its_version_without_the_python_package(folder, monkeypatch):
    monkeypatch.setitem(tools._versions, "tensorrt", tools.MISSING)
    (folder / "libnvinfer.so.10.11.0").touch()
    (folder / "libnvinfer.so.10").symlink_to("libnvinfer.so.10.11.0")
    known = facts.of("tensorrt.version", PROVIDER)
    assert known.value == "10.11.0"
    assert str(folder / "libnvinfer.so.10.11.0") in known.paths
    assert facts.of("tensorrt.version", None).value == tools.MISSING


def test_a_library_of_pip_has_the_version_of_the_python_package(folder, monkeypatch):
    monkeypatch.setitem(tools._versions, "tensorrt", "10.13.0.35")
    (folder / "libnvinfer.so.10").touch()
    assert facts.of("tensorrt.version", PROVIDER).value == "10.13.0.35"
