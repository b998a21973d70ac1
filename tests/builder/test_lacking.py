"""A job that waits says what differs between this machine and the one that it needs."""

import pytest

from engine.builder import facts, lacking
from engine.machine import local_gpus, shared_libraries, tools
from engine.machine.local_gpus import LocalGpu
from engine.step import Device, Hardware

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="10.x")


@pytest.fixture
def machine(monkeypatch):
    """Let a test choose the names of the GPUs, and the version of TensorRT."""

    def be(*gpus, tensorrt=tools.MISSING):
        monkeypatch.setattr(local_gpus, "gpus", lambda: tuple(LocalGpu(name, 75, 15360, "580.65.06") for name in gpus))
        monkeypatch.setitem(tools._versions, "tensorrt", tensorrt)

    return be


def test_on_the_very_gpu_with_another_tensorrt_nothing_is_to_be_run_elsewhere(machine):
    machine("Tesla T4", tensorrt="11.1.0.9")
    lack = lacking.lack(T4)
    assert lack.has_gpu
    assert lack.advice == (
        "this machine has Tesla T4 (sm_75), but tensorrt 11.1.0.9 instead of 10.x; "
        'pip install "tensorrt==10.*", then run the same command again (or change the recipe: version: "11.1.0.9")'
    )


def test_the_advice_names_no_release_that_pip_lacks(machine):
    """The image 24.05 has TensorRT 10.0.1.6, which pip knows as 10.0.1."""
    machine("Tesla T4", tensorrt="11.1.0.106")
    of_image = T4.model_copy(update={"version": "10.0.1.6"})
    assert 'pip install "tensorrt==10.0.1", then' in lacking.lack(of_image).advice
    nowhere = T4.model_copy(update={"version": "10.17"})
    assert lacking.lack(nowhere).advice.endswith(
        'pip has no such release of tensorrt; change the recipe: version: "11.1.0.106"'
    )


def test_pips_version_without_a_build_does_for_the_image_and_after_a_post_release(machine):
    machine("Tesla T4", tensorrt="10.0.1")
    assert lacking.lack(T4.model_copy(update={"version": "10.0.1.6"})) is None
    machine("Tesla T4", tensorrt="10.7.0.post1")
    assert lacking.lack(T4.model_copy(update={"version": "10.7.0.23"})) is None


def test_on_the_very_gpu_without_tensorrt_the_advice_is_to_install_it(machine):
    machine("Tesla T4")
    assert lacking.lack(T4).advice == (
        'this machine has Tesla T4 (sm_75), but tensorrt is not installed; pip install "tensorrt==10.*", '
        "then run the same command again"
    )


def test_on_another_gpu_the_advice_names_it(machine):
    machine("NVIDIA RTX 2080 Ti", tensorrt="10.11.0.33")
    advice = lacking.lack(T4).advice
    assert advice == (
        "this machine has NVIDIA RTX 2080 Ti (sm_75); for it, a recipe says `target.device: RTX 2080 Ti`; "
        "run the same command there with this cache (copy cache/ along, or share it)"
    )


def test_without_a_gpu_the_advice_is_only_to_go_where_one_is(machine):
    machine(tensorrt="10.11.0.33")
    assert lacking.lack(T4).advice.startswith("run the same command there")
    assert not lacking.lack(T4).has_gpu


def test_libraries_that_the_tool_loads_and_does_not_bring_are_lacking(machine, monkeypatch):
    """As on a machine with onnxruntime-gpu and without TensorRT, where its TensorRT provider opens no model."""
    machine("Tesla T4")
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", "1.31.1")
    names = ("libnvinfer.so.10", "libnvonnxparser.so.10")
    provider = Hardware(devices=T4.devices, tool="onnxruntime-gpu", libraries=names, brought_by='"tensorrt==10.*"')
    here = set(names[:1])
    monkeypatch.setattr(shared_libraries, "is_here", lambda name: name in here)
    assert str(provider) == "T4 (sm_75) with onnxruntime-gpu and libnvinfer.so.10, libnvonnxparser.so.10"
    lack = lacking.lack(provider)
    assert lack.package == '"tensorrt==10.*"'
    assert lack.advice == (
        "this machine has Tesla T4 (sm_75), but not libnvonnxparser.so.10, which onnxruntime-gpu loads; "
        'pip install "tensorrt==10.*", then run the same command again'
    )
    here |= set(names)
    assert lacking.lack(provider) is None
    assert {known.value for known in facts.needed_by(provider)} == {"1.31.1", "Tesla T4 (sm_75)", "yes"}


def test_nothing_is_lacking_where_the_job_can_run(machine):
    machine("Tesla T4", tensorrt="10.11.0.33")
    assert lacking.lack(T4) is None
    assert facts.can_run(T4)


def test_what_would_overwrite_the_files_of_another_distribution_takes_its_place(machine, monkeypatch):
    """docs/gpu.md: onnxruntime and onnxruntime-gpu both install the module onnxruntime."""
    machine("Tesla T4")
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", tools.MISSING)
    on_gpu = T4.model_copy(update={"tool": "onnxruntime-gpu", "version": None})
    if tools.version_of("onnxruntime") == tools.MISSING or tools.build("onnxruntime").value != "onnxruntime":
        pytest.skip("there is no onnxruntime here that onnxruntime-gpu would overwrite")
    assert lacking.lack(on_gpu).advice == (
        "this machine has Tesla T4 (sm_75), but onnxruntime-gpu is not installed; pip uninstall -y onnxruntime && "
        "pip install onnxruntime-gpu, then run the same command again"
    )
