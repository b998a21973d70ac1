"""A job that waits says what differs between this machine and the one that it needs."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import api, commands
from engine.builder import facts
from engine.commands import doctor
from engine.errors import Exit
from engine.gpus.hardware import Device, Driver, Hardware
from engine.machine import cuda, local_gpus, nvml, shared_libraries, tools
from engine.machine.local_gpus import LocalGpu
from engine.runtimes import requirements
from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES

T4 = Hardware(devices=(Device(name="T4", sm=75),), tool="tensorrt", version="10.x")

PROVIDER = Hardware(devices=T4.devices, tool="onnxruntime-gpu", libraries=TENSORRT_LIBRARIES)


@pytest.fixture
def machine(monkeypatch):
    """Let a test choose the names of the GPUs and the versions of distributions; no package tells its CUDA."""
    monkeypatch.setattr(nvml, "boards", lambda: ())
    monkeypatch.setattr(local_gpus, "major_of", lambda _: None)
    monkeypatch.setattr(requirements, "modules_missing", lambda _: [])

    def be(*gpus, **versions):
        monkeypatch.setattr(local_gpus, "gpus", lambda: tuple(LocalGpu(name, 75, "580.65.06") for name in gpus))
        for name, version in {"tensorrt": tools.MISSING, **versions}.items():
            monkeypatch.setitem(tools._versions, name.replace("_gpu", "-gpu"), version)

    return be


@pytest.mark.parametrize(
    ("gpus", "tensorrt", "has_gpu", "advice"),
    [
        (["Tesla T4"], "11.1.0.9", True,
         ('this machine has Tesla T4 (sm_75), but tensorrt 11.1.0.9 instead of 10.x; pip install "tensorrt==10.*", '
         'then run the same command again (or change the recipe: version: "11.1.0.9")')),
        (["Tesla T4"], tools.MISSING, True,
         ('this machine has Tesla T4 (sm_75), but tensorrt is not installed; pip install "tensorrt==10.*", '
         "then run the same command again")),
        (["NVIDIA RTX 2080 Ti"], "10.11.0.33", False,
         ("this machine has NVIDIA RTX 2080 Ti (sm_75); for it, a recipe says `target.device: RTX 2080 Ti`; "
         "run the same command there with this cache (copy cache/ along, or share it)")),
        ([], "10.11.0.33", False, "run the same command there with this cache (copy cache/ along, or share it)"),
    ],
    ids=["another TensorRT", "no TensorRT", "another GPU", "no GPU"],
)  # fmt: skip
def test_the_advice_says_what_is_here_and_what_to_do(machine, gpus, tensorrt, has_gpu, advice):
    machine(*gpus, tensorrt=tensorrt)
    lack = requirements.lack(T4)
    assert (lack.has_gpu, lack.advice) == (has_gpu, advice)


def test_the_advice_names_no_release_that_pip_lacks(machine):
    """The image 24.05 has TensorRT 10.0.1.6, which pip knows as 10.0.1."""
    machine("Tesla T4", tensorrt="11.1.0.106")
    of_image = T4.model_copy(update={"version": "10.0.1.6"})
    assert 'pip install "tensorrt==10.0.1", then' in requirements.lack(of_image).advice
    nowhere = T4.model_copy(update={"version": "10.17"})
    assert requirements.lack(nowhere).advice.endswith(
        'pip has no such release of tensorrt; change the recipe: version: "11.1.0.106"'
    )


def test_without_tensorrt_a_version_that_is_no_release_is_to_be_changed(machine):
    """pip would install another version, which does not agree with the recipe."""
    machine("Tesla T4")
    for version in ("10.17", "10.99"):
        lack = requirements.lack(T4.model_copy(update={"version": version}))
        assert lack.packages == ()
        assert lack.remedy == 'pip has no such release of tensorrt; change the recipe: version: "10.16.0.72"'


def test_pips_version_without_a_build_does_for_the_image_and_after_a_post_release(machine):
    machine("Tesla T4", tensorrt="10.0.1")
    assert requirements.lack(T4.model_copy(update={"version": "10.0.1.6"})) is None
    machine("Tesla T4", tensorrt="10.7.0.post1")
    assert requirements.lack(T4.model_copy(update={"version": "10.7.0.23"})) is None
    assert requirements.lack(T4) is None
    assert facts.can_run(T4)


def test_libraries_that_the_tool_loads_and_does_not_bring_are_lacking(machine, monkeypatch):
    """As on a machine with onnxruntime-gpu and without TensorRT, where its TensorRT provider opens no model."""
    machine("Tesla T4", onnxruntime_gpu="1.31.1")
    here = {"libnvinfer.so.10"}
    monkeypatch.setattr(shared_libraries, "is_here", lambda name: name in here)
    assert str(PROVIDER) == "T4 (sm_75) with onnxruntime-gpu and TensorRT 10"
    lack = requirements.lack(PROVIDER)
    assert lack.packages == ('"tensorrt==10.*"',)
    assert lack.advice == (
        "this machine has Tesla T4 (sm_75), but not libnvonnxparser.so.10 of TensorRT 10, which onnxruntime-gpu loads; "
        'pip install "tensorrt==10.*", then run the same command again'
    )
    here |= set(TENSORRT_LIBRARIES.names)
    assert requirements.lack(PROVIDER) is None
    assert {known.value for known in facts.needed_by(PROVIDER)} == {"1.31.1", "Tesla T4 (sm_75)", "yes"}


@pytest.mark.parametrize("built_for", [12, 13])
def test_tensorrt_is_to_be_for_the_cuda_of_the_installed_onnx_runtime(machine, monkeypatch, built_for):
    """`tensorrt` itself gets a build for CUDA 13, which does not fit onnxruntime-gpu 1.26."""
    machine("Tesla T4", onnxruntime_gpu="1.26.0")
    monkeypatch.setattr(local_gpus, "major_of", lambda _: built_for)
    assert requirements.lack(PROVIDER).packages == (f'"tensorrt-cu{built_for}==10.*"',)


@pytest.fixture
def by_pip(machine, monkeypatch, tmp_path):
    """Let a test install ONNX Runtime and TensorRT for versions of CUDA, as pip does, beside a driver."""
    monkeypatch.undo()
    monkeypatch.setattr(nvml, "boards", lambda: ())
    monkeypatch.setattr(shared_libraries, "_listed", lambda _: [])
    monkeypatch.setattr(shared_libraries, "_FOLDERS", (str(tmp_path / "lib"),))
    monkeypatch.syspath_prepend(tmp_path)

    def described(name, *requires):
        folder = tmp_path / f"{name.replace('-', '_')}-9.9.dist-info"
        folder.mkdir()
        lines = [f"Name: {name}", "Version: 9.9", *(f"Requires-Dist: {each}" for each in requires)]
        (folder / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n")

    def be(*, onnxruntime, tensorrt, driver, system=False):
        machine("Tesla T4", onnxruntime_gpu="9.9")
        described("onnxruntime-gpu", *([f"nvidia-cudnn-cu{onnxruntime}; extra == 'cudnn'"] if onnxruntime else []))
        described("tensorrt", f"tensorrt_cu{tensorrt}==9.9")
        for folder in ("tensorrt_libs", *(["lib"] if system else [])):
            (tmp_path / folder).mkdir()
            for library in TENSORRT_LIBRARIES.names:
                (tmp_path / folder / library).touch()
        monkeypatch.setattr(cuda, "supported", lambda: (driver, 0))

    return be


def test_a_tensorrt_for_another_cuda_than_onnx_runtimes_is_replaced_by_one_command(by_pip):
    """Source: the table "Requirements" of ONNX Runtime's TensorRT provider has a version of CUDA for each pair."""
    by_pip(onnxruntime=13, tensorrt=12, driver=13)
    lack = requirements.lack(PROVIDER)
    assert lack.advice == (
        "this machine has Tesla T4 (sm_75), but onnxruntime-gpu is built for CUDA 13, and tensorrt for CUDA 12; "
        "pip uninstall -y tensorrt tensorrt-cu12 tensorrt-cu12-libs tensorrt-cu12-bindings && "
        'pip install "tensorrt-cu13==10.*", then run the same command again'
    )
    step = SimpleNamespace(hardware=lambda: PROVIDER, tools_used=lambda: ())
    assert requirements.for_steps([("j", step)]).command == lack.remedy.partition(", then")[0]


def test_a_tensorrt_for_a_later_cuda_than_the_driver_is_replaced_by_one_for_the_driver(by_pip):
    by_pip(onnxruntime=None, tensorrt=13, driver=12)
    lack = requirements.lack(PROVIDER)
    assert "the driver supports CUDA 12.0, and tensorrt is built for CUDA 13, which needs driver 580" in lack.here
    assert lack.packages == ('"tensorrt-cu12==10.*"',)


@pytest.mark.parametrize(
    "installed",
    [
        {"onnxruntime": 12, "tensorrt": 12, "driver": 13},
        {"onnxruntime": 13, "tensorrt": 13, "driver": 13},
        {"onnxruntime": None, "tensorrt": 12, "driver": 12},
        {"onnxruntime": 13, "tensorrt": 12, "driver": 13, "system": True},  # the system's TensorRT is loaded first
    ],
)
def test_a_tensorrt_that_fits_is_left_alone(by_pip, installed):
    by_pip(**installed)
    assert requirements.lack(PROVIDER) is None


def test_the_package_and_the_libraries_that_it_loads_are_installed_together(machine, monkeypatch):
    machine("Tesla T4", onnxruntime_gpu=tools.MISSING)
    monkeypatch.setattr(tools, "in_the_way", lambda _: None)
    assert requirements.lack(PROVIDER).packages == ("onnxruntime-gpu", '"tensorrt==10.*"')
    monkeypatch.setattr(shared_libraries, "is_here", lambda _: True)
    assert requirements.lack(PROVIDER).packages == ("onnxruntime-gpu",)


def test_on_a_jetson_pip_does_not_install_tensorrt(machine, monkeypatch):
    machine("Orin", onnxruntime_gpu="1.26.0")
    monkeypatch.setattr(local_gpus, "local", lambda _: LocalGpu("Orin", 87, "540.4.0"))
    orin = PROVIDER.model_copy(update={"devices": (Device(name="Jetson AGX Orin", sm=87),)})
    lack = requirements.lack(orin)
    assert lack.packages == ()
    assert lack.remedy == "install TensorRT 10 of NVIDIA's JetPack, then run the same command again"


def test_what_would_overwrite_the_files_of_another_distribution_takes_its_place(machine, monkeypatch):
    """docs/gpu.md: onnxruntime and onnxruntime-gpu both install the module onnxruntime."""
    machine("Tesla T4", onnxruntime_gpu=tools.MISSING)
    on_gpu = T4.model_copy(update={"tool": "onnxruntime-gpu", "version": None})
    if tools.version_of("onnxruntime") == tools.MISSING or tools.build("onnxruntime").value != "onnxruntime":
        pytest.skip("there is no onnxruntime here that onnxruntime-gpu would overwrite")
    assert requirements.lack(on_gpu).advice == (
        "this machine has Tesla T4 (sm_75), but onnxruntime-gpu is not installed; pip uninstall -y onnxruntime && "
        "pip install onnxruntime-gpu, then run the same command again"
    )


def test_a_job_of_a_stored_plan_needs_the_same_libraries():
    """A plan stores the options of steps, and no libraries among them: keys are the same with and without them."""
    recipe = Path(__file__).parents[2] / "recipes" / "minilm_cuda.yaml"
    seen = set()
    for job in (job for variant in api.plan([recipe]) for job in variant.jobs if job.step.hardware()):
        assert "libraries" not in repr(job.traits.options)
        stored = type(job.step).model_validate(job.traits.options)
        assert stored.hardware() == job.step.hardware()
        seen.add(stored.hardware().libraries)
    assert seen == {None, TENSORRT_LIBRARIES}


T4_NAMED = T4.model_copy(update={"version": "10.11.0.33"})
RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def equipped(machine, monkeypatch):
    """The fixture `machine` with ONNX Runtime for CPUs, unless the test says otherwise."""
    monkeypatch.setattr(tools, "in_the_way", {"onnxruntime-gpu": "onnxruntime"}.get)
    monkeypatch.setitem(tools._versions, "onnxruntime-gpu", tools.MISSING)
    return machine


def job(*used, hardware=None, name="a-job"):
    return name, SimpleNamespace(hardware=lambda: hardware, tools_used=lambda: used)


def test_a_machine_that_has_everything_needs_nothing(equipped):
    equipped("Tesla T4", tensorrt="10.11.0.33", torch="2.13.0")
    lacks = requirements.for_steps([job("torch"), job("tensorrt", hardware=T4_NAMED)])
    assert (lacks.absent, lacks.drivers, lacks.waits, lacks.command) == ((), (), {}, "")


def test_one_command_installs_the_extras_and_the_version_of_tensorrt_that_the_recipe_names(equipped):
    equipped("Tesla T4", tensorrt="11.1.0.9", torch=tools.MISSING, onnx=tools.MISSING, timm=tools.MISSING)
    lacks = requirements.for_steps([job("torch", "onnx", "timm"), job("onnx", "tensorrt", hardware=T4_NAMED)])
    assert lacks.absent == ("torch", "onnx", "timm")
    assert lacks.command == "pip install 'recipe-build[cpu,timm]' \"tensorrt==10.11.0.33\""
    assert not lacks.waits, "the command mends it"


def test_a_package_beside_tensorrt_is_part_of_the_command(equipped, monkeypatch):
    equipped("Tesla T4", tensorrt="10.11.0.33")
    monkeypatch.setattr(requirements, "modules_missing", lambda distribution: ["cuda-bindings"])
    assert requirements.for_steps([job("tensorrt", hardware=T4_NAMED)]).command == "pip install cuda-bindings"


BY_CUDA = Hardware(devices=T4.devices, tool="onnxruntime-gpu")
DRIVERS = (
    Driver(runtime="onnxruntime", tool="onnxruntime-gpu"),
    Driver(runtime="tensorrt", tool="tensorrt", version="10.x"),
)
EITHER = BY_CUDA.model_copy(update={"drivers": DRIVERS})


@pytest.mark.parametrize(
    ("needed", "installs"),
    [
        ([BY_CUDA], "onnxruntime-gpu"),
        ([BY_CUDA, PROVIDER], 'onnxruntime-gpu "tensorrt==10.*"'),
        ([EITHER, EITHER.driven_for("tensorrt")], 'onnxruntime-gpu "tensorrt==10.*"'),
    ],
    ids=["what is in the way is removed", "with libraries", "several runtimes"],
)
def test_all_that_the_jobs_on_the_gpu_need_is_one_command(equipped, needed, installs):
    equipped("Tesla T4")
    lacks = requirements.for_steps([job(*each.tools, hardware=each) for each in needed])
    assert lacks.command == f"pip uninstall -y onnxruntime && pip install {installs}"
    assert not lacks.waits


def test_a_version_that_pip_does_not_have_is_not_part_of_the_command(equipped):
    equipped("Tesla T4", tensorrt="10.11.0.33")
    lacks = requirements.for_steps([job("tensorrt", hardware=T4.model_copy(update={"version": "10.17"}))])
    assert lacks.command == ""
    [why] = lacks.waits
    assert "pip has no such release of tensorrt" in why


def test_without_the_gpu_nothing_is_to_be_installed_for_it(equipped):
    equipped()
    lacks = requirements.for_steps(
        [job("tensorrt", hardware=T4_NAMED, name="trt-build"), job("tensorrt", hardware=T4_NAMED, name="bench")]
    )
    assert lacks.command == ""
    [(why, names)] = lacks.waits.items()
    assert why.startswith("T4 (sm_75) with tensorrt 10.11.0.33: run the same command there")
    assert names == ("trt-build", "bench")


def test_a_package_that_builds_engines_without_a_gpu_comes_with_its_extra(equipped):
    equipped(tensorrt_rtx=tools.MISSING)
    assert requirements.for_steps([job("tensorrt_rtx")]).command == "pip install 'recipe-build[rtx]'"


def test_each_job_of_a_shipped_recipe_is_looked_at(equipped, capsys):
    equipped()
    recipe = RECIPES / "minilm_t4.yaml"
    assert doctor.run(commands.parse(["doctor", "--for", str(recipe)])) == Exit.WAITING
    printed = capsys.readouterr().out
    waiting = {job.name for variant in api.plan([recipe]) for job in variant.jobs if job.step.hardware()}
    assert {"trt-build", "validate", "bench"} == waiting
    assert all(name in printed.splitlines()[0] for name in waiting)


def test_a_recipe_that_can_be_built_here_ends_with_success(capsys):
    assert doctor.run(commands.parse(["doctor", "--for", str(RECIPES / "minilm_cpu.yaml")])) == Exit.OK
    assert capsys.readouterr().out == "nothing is missing: every job can run here\n"


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here")
def test_without_a_driver_no_runtime_works_and_each_says_what_else_it_lacks():
    lacks = requirements.for_ways(lambda name: name != "onnxruntime-gpu")
    assert all(reasons[0].startswith("an NVIDIA driver") for reasons in lacks.values())
    assert "onnxruntime-gpu" in lacks["onnxruntime, provider: cuda"]
    assert "libnvinfer.so.10" in lacks["onnxruntime, provider: tensorrt"]
    assert "tensorrt" not in lacks["tensorrt"]


def test_with_a_driver_and_all_packages_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(cuda, "devices", lambda: ("a GPU",))
    monkeypatch.setattr(requirements, "_can_import", lambda _: True)
    monkeypatch.setattr(shared_libraries, "is_here", lambda _: True)
    assert set(map(tuple, requirements.for_ways(lambda _: True).values())) == {()}
    assert requirements.for_ways(lambda name: name != "tensorrt")["tensorrt"] == ["tensorrt"]


def test_a_package_inside_one_that_is_not_there_is_not_found():
    assert not requirements._can_import("no_such_package.inner")
    assert requirements._can_import("json.decoder")


def test_the_doctor_tells_of_every_runtime(capsys):
    doctor.run(commands.parse(["doctor"]))
    printed = capsys.readouterr().out
    assert [way in printed for way in requirements.for_ways(bool)] == [True] * 5
