"""What a machine lacks for the jobs of recipes, and the one command that installs it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import api, commands
from engine.builder import needs
from engine.commands import doctor
from engine.errors import Exit
from engine.machine import drivers, local_gpus, nvml, tools
from engine.machine.local_gpus import LocalGpu
from engine.runtimes import gpu_runtimes
from engine.runtimes.onnxruntime.libraries import TENSORRT
from engine.step import Device, Driver, Hardware

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="10.11.0.33")
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def machine(monkeypatch):
    """Let a test choose the names of the GPUs, and the versions of distributions; CUDA's Python package is there.

    Unless the test says otherwise, ONNX Runtime is the one for CPUs.
    """
    monkeypatch.setattr(nvml, "boards", lambda: ())
    monkeypatch.setattr(drivers, "major_of", lambda _: None)
    monkeypatch.setattr(tools, "in_the_way", {"onnxruntime-gpu": "onnxruntime"}.get)
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", tools.MISSING)

    def be(*gpus, **versions):
        monkeypatch.setattr(local_gpus, "gpus", lambda: tuple(LocalGpu(name, 75, 15360, "580.65.06") for name in gpus))
        monkeypatch.setattr(gpu_runtimes, "modules_missing", lambda distribution: [])
        for name, version in versions.items():
            monkeypatch.setitem(tools._versions, name, version)

    return be


def job(*used, hardware=None, name="a-job"):
    return SimpleNamespace(name=name, step=SimpleNamespace(hardware=lambda: hardware, tools_used=lambda: used))


def test_a_machine_that_has_everything_needs_nothing(machine):
    machine("Tesla T4", tensorrt="10.11.0.33", torch="2.13.0")
    lacking = needs.of([job("torch"), job("tensorrt", hardware=T4)])
    assert (lacking.absent, lacking.drivers, lacking.waits, lacking.command) == ((), (), {}, "")


def test_one_command_installs_the_extras_and_the_version_of_tensorrt_that_the_recipe_names(machine):
    machine("Tesla T4", tensorrt="11.1.0.9", torch=tools.MISSING, onnx=tools.MISSING, timm=tools.MISSING)
    lacking = needs.of([job("torch", "onnx", "timm"), job("onnx", "tensorrt", hardware=T4)])
    assert lacking.absent == ("torch", "onnx", "timm")
    assert lacking.command == "pip install 'recipe-build[cpu,timm]' \"tensorrt==10.11.0.33\""
    assert not lacking.waits, "the command mends it"


def test_a_package_beside_tensorrt_is_part_of_the_command(machine, monkeypatch):
    machine("Tesla T4", tensorrt="10.11.0.33")
    monkeypatch.setattr(gpu_runtimes, "modules_missing", lambda distribution: ["cuda-bindings"])
    assert needs.of([job("tensorrt", hardware=T4)]).command == "pip install cuda-bindings"


def test_a_distribution_in_the_way_is_removed_before(machine):
    """onnxruntime and onnxruntime-gpu have the same import package; the advice of a waiting job says the same."""
    machine("Tesla T4")
    needed = Hardware(devices=T4.devices, tool="onnxruntime-gpu")
    lacking = needs.of([job("onnxruntime-gpu", hardware=needed)])
    assert lacking.command == "pip uninstall -y onnxruntime && pip install onnxruntime-gpu"
    assert not lacking.waits


def test_onnx_runtime_and_the_libraries_that_it_loads_are_one_command(machine):
    machine("Tesla T4")
    by_cuda = Hardware(devices=T4.devices, tool="onnxruntime-gpu")
    by_tensorrt = by_cuda.model_copy(update={"libraries": TENSORRT})
    lacking = needs.of([job("onnxruntime-gpu", hardware=each) for each in (by_cuda, by_tensorrt)])
    assert lacking.command == 'pip uninstall -y onnxruntime && pip install onnxruntime-gpu "tensorrt==10.*"'


def test_the_packages_of_several_runtimes_are_one_command(machine):
    machine("Tesla T4")
    drivers = (
        Driver(runtime="onnxruntime", tool="onnxruntime-gpu"),
        Driver(runtime="tensorrt", tool="tensorrt", version="10.x"),
    )
    either = Hardware(devices=T4.devices, tool="onnxruntime-gpu", drivers=drivers)
    jobs = [
        job("onnxruntime-gpu", "tensorrt", hardware=either),
        job("tensorrt", hardware=either.driven_for("tensorrt")),
    ]
    assert needs.of(jobs).command == 'pip uninstall -y onnxruntime && pip install onnxruntime-gpu "tensorrt==10.*"'


def test_a_version_that_pip_does_not_have_is_not_part_of_the_command(machine):
    machine("Tesla T4", tensorrt="10.11.0.33")
    lacking = needs.of([job("tensorrt", hardware=Hardware(devices=T4.devices, tool="tensorrt", version="10.17"))])
    assert lacking.command == ""
    [why] = lacking.waits
    assert "pip has no such release of tensorrt" in why


def test_without_the_gpu_nothing_is_to_be_installed_for_it(machine):
    machine(tensorrt=tools.MISSING)
    lacking = needs.of([job("tensorrt", hardware=T4, name="trt-build"), job("tensorrt", hardware=T4, name="bench")])
    assert lacking.command == ""
    [(why, names)] = lacking.waits.items()
    assert why.startswith("T4 (sm_75) with tensorrt 10.11.0.33: run the same command there")
    assert names == ("trt-build", "bench")


def test_a_package_that_builds_engines_without_a_gpu_comes_with_its_extra(machine):
    machine(tensorrt_rtx=tools.MISSING)
    assert needs.of([job("tensorrt_rtx")]).command == "pip install 'recipe-build[rtx]'"


def test_each_job_of_a_shipped_recipe_is_looked_at(machine, capsys):
    machine(tensorrt=tools.MISSING)
    recipe = RECIPES / "minilm_t4.yaml"
    assert doctor.run(commands.parse(["doctor", "--for", str(recipe)])) == Exit.WAITING
    printed = capsys.readouterr().out
    waiting = {job.name for variant in api.plan([recipe]) for job in variant.jobs if job.step.hardware()}
    assert {"trt-build", "validate", "bench"} == waiting
    assert all(name in printed.splitlines()[0] for name in waiting)


def test_a_recipe_that_can_be_built_here_ends_with_success(capsys):
    assert doctor.run(commands.parse(["doctor", "--for", str(RECIPES / "minilm_cpu.yaml")])) == Exit.OK
    assert capsys.readouterr().out == "nothing is missing: every job can run here\n"
