"""Requirements of jobs that run on GPUs: which GPUs and packages, what this machine lacks, and how to install it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import gpus
from engine.gpus.hardware import Device, Driver, Hardware
from engine.machine import cuda, local_gpus, shared_libraries, tools
from engine.runtimes import registry
from engine.runtimes.releases import exists, nearest, requirement
from engine.runtimes.support import Way
from engine.text import distribution
from engine.text.versions import agrees

if TYPE_CHECKING:
    from engine.recipe.schema import Recipe
    from engine.step import Step

_THERE = "run the same command there with this cache (copy cache/ along, or share it)"
"""What to do if the GPU is in another machine."""
_AGAIN = "then run the same command again"
_DRIVER = "an NVIDIA driver that shows a GPU (libcuda.so.1)"


@dataclass(frozen=True)
class Lack:
    """What a machine lacks for a job, and what to do about it.

    `has_gpu` tells whether the machine has a GPU that the job can run on. `here` says what the machine has instead of
    what the job needs; it is empty for a machine without GPUs. `packages` is what pip has to install, empty where that
    does not help; `in_the_way` names the distributions that pip has to remove before.
    """

    has_gpu: bool
    here: str
    remedy: str
    packages: tuple[str, ...] = ()
    in_the_way: str = ""

    @property
    def advice(self) -> str:
        """What the machine has, and what to do: "this machine has Tesla T4 (sm_75), but ...; pip install ..."."""
        return "; ".join(filter(None, (self.here, self.remedy)))


@dataclass(frozen=True)
class Lacks:
    """What this machine lacks for some jobs.

    `absent` has the names of Python packages that an extra of this project installs, `drivers` the requirements for pip
    of packages that drive a GPU of this machine, and `in_the_way` the names of distributions that pip has to remove
    before. `waits` maps a sentence, which says what else is lacking and what to do, to the names of the jobs that wait.
    """

    absent: tuple[str, ...]
    drivers: tuple[str, ...]
    in_the_way: tuple[str, ...]
    waits: Mapping[str, tuple[str, ...]]

    @property
    def command(self) -> str:
        """The one command that installs all that pip can install; empty if nothing is to be installed."""
        extras = sorted({distribution.extra_with(name) or "cpu" for name in self.absent})
        if "cpu" in extras and "onnx" in extras:
            extras.remove("onnx")  # the extra `cpu` has all packages of the extra `onnx`
        ours = [f"'{distribution.NAME}[{','.join(extras)}]'"] if extras else []
        every = [*ours, *self.drivers]
        removed = f"pip uninstall -y {' '.join(self.in_the_way)} && " if self.in_the_way else ""
        return f"{removed}pip install {' '.join(every)}" if every else ""


def required(recipe: Recipe) -> Hardware | None:
    """Return the GPUs that the recipe's model needs, with the distributions that run models on GPUs; None for a CPU.

    Raises UsageError for a GPU that the catalogue does not know.
    """
    runtime = registry.of(recipe)
    if candidates := runtime.candidates(recipe):
        needs = {name: need for name in candidates if (need := required(recipe.as_run_by(name)))}
        return of_all(needs) if candidates[0] in needs else None
    tool = None if runtime.runs_on_cpu(recipe.target) else runtime.tool(recipe.target)
    return None if tool is None else on(recipe.target.devices, tool=tool, version=runtime.tool_version(recipe))


def of_all(needs: Mapping[str, Hardware]) -> Hardware:
    """Return the hardware of the first of several runtimes, with the packages that drive the GPU for all of them."""
    drivers = dict.fromkeys(
        driver
        for name, each in needs.items()
        for driver in each.drivers or [Driver(runtime=name, tool=each.tool, version=each.version)]
    )
    first, *others = needs.values()
    libraries = next((each.libraries for each in (first, *others) if each.libraries), None)
    return first.model_copy(update={"drivers": tuple(drivers), "libraries": libraries})


def on(names: Sequence[str], *, tool: str, version: str | None = None) -> Hardware:
    """Return the GPUs with the given names. Raises UsageError for a name that the catalogue does not know."""
    named = [gpus.find(name) for name in names]
    return Hardware(devices=tuple(Device(name=gpu.name, sm=gpu.sm) for gpu in named), tool=tool, version=version)


def lack(hardware: Hardware) -> Lack | None:
    """Return what this machine lacks for a job that must run on `hardware`; None if it can run here."""
    gpu = local_gpus.local(hardware)
    if gpu is None:
        return Lack(has_gpu=False, here=_others(hardware), remedy=_THERE)
    name = gpus.with_capability(gpu.name, gpu.sm)
    has = f"this machine has {name}"
    return next(filter(None, (_tool(each, has) or _libraries(each, has) for each in hardware.each)), None)


def for_steps(steps: Iterable[tuple[str, Step]]) -> Lacks:
    """Return what this machine lacks for jobs, of which each is a name and its step.

    A package that drives a GPU is only missing where the GPU is: elsewhere the job waits, whatever is installed.
    """
    absent: dict[str, None] = {}
    driving: dict[str, None] = {}
    in_the_way: dict[str, None] = {}
    waits: dict[str, dict[str, None]] = {}
    for job, step in steps:
        hardware = step.hardware()
        drives = () if hardware is None else hardware.tools
        names = (name for name in step.tools_used() if name not in drives)
        absent |= dict.fromkeys(name for name in names if tools.version_of(name) == tools.MISSING)
        if hardware is None:
            continue
        missing = lack(hardware)
        if missing is not None and missing.packages:
            driving |= dict.fromkeys(missing.packages)
            in_the_way |= dict.fromkeys(filter(None, [missing.in_the_way]))
        elif missing is not None:
            waits.setdefault(f"{hardware}: {missing.advice}", {})[job] = None
        if missing is None or missing.has_gpu:
            driving |= dict.fromkeys(name for tool in hardware.tools for name in modules_missing(tool))
    named = {why: tuple(jobs_waiting) for why, jobs_waiting in waits.items()}
    return Lacks(tuple(absent), tuple(driving), tuple(in_the_way), named)


def to_install(hardware: Hardware) -> tuple[str, ...]:
    """Return all that pip installs for jobs with `hardware`: the tool, and what brings the libraries that it loads.

    Each is a requirement, quoted for shells.
    """
    return tuple(name for each in hardware.each for name in (requirement(each.tool, each.version), *_bringing(each)))


def _bringing(hardware: Hardware) -> tuple[str, ...]:
    """Return what pip installs to get the libraries, built for the same CUDA as the tool that is installed here.

    The result is empty for a Jetson, where NVIDIA's JetPack brings them.
    """
    libraries = hardware.libraries
    if libraries is None or any(gpus.find(device.name).sold == "jetson" for device in hardware.devices):
        return ()
    built = local_gpus.major_of(hardware.tool)
    distribution = f"{libraries.distribution}-cu{built}" if built else libraries.distribution
    return (requirement(distribution, libraries.version),)


def _tool(hardware: Hardware, has: str) -> Lack | None:
    """Return what is wrong with the Python package that drives the GPU; the text `has` names the GPU."""
    version = tools.version_of(hardware.tool)
    if version == tools.MISSING:
        here = f"{has}, but {hardware.tool} is not installed"
        instead = nearest(hardware.tool, hardware.version or "")
        return _unreleased(hardware, here, instead) or _missing(hardware, here)
    if not agrees(hardware.version or "", version):
        here = f"{has}, but {hardware.tool} {version} instead of {hardware.version}"
        package = requirement(hardware.tool, hardware.version)
        remedy = f'pip install {package}, {_AGAIN} (or change the recipe: version: "{version}")'
        return _unreleased(hardware, here, version) or Lack(has_gpu=True, here=here, remedy=remedy, packages=(package,))
    if old := local_gpus.driver_lacks(hardware.tool):
        remedy = "update the driver, or install a build of the package for the CUDA that the driver supports"
        return Lack(has_gpu=True, here=f"{has}, but {old}", remedy=remedy)
    return None


def _unreleased(hardware: Hardware, here: str, instead: str) -> Lack | None:
    """Return that pip has no release of the tool that the recipe allows; `instead` is a version that it can name."""
    if exists(hardware.tool, hardware.version):
        return None
    remedy = f'pip has no such release of {hardware.tool}; change the recipe: version: "{instead}"'
    return Lack(has_gpu=True, here=here, remedy=remedy)


def _missing(hardware: Hardware, here: str) -> Lack:
    """Return that the tool is to be installed, together with the libraries that it loads and that are absent."""
    packages = to_install(hardware) if _absent(hardware) else (requirement(hardware.tool, hardware.version),)
    install = f"pip install {' '.join(packages)}, {_AGAIN}"
    other = tools.in_the_way(hardware.tool) or ""
    remedy = f"pip uninstall -y {other} && {install}" if other else install
    return Lack(has_gpu=True, here=here, remedy=remedy, packages=packages, in_the_way=other)


def _libraries(hardware: Hardware, has: str) -> Lack | None:
    """Return which of the libraries are absent that the Python package loads and does not bring."""
    absent = _absent(hardware)
    if hardware.libraries is None or not absent:
        return _of_other_cuda(hardware, has)
    title = hardware.libraries.title
    here = f"{has}, but not {' and '.join(absent)} of {title}, which {hardware.tool} loads"
    packages = _bringing(hardware)
    install = f"pip install {' '.join(packages)}" if packages else f"install {title} of NVIDIA's JetPack"
    return Lack(has_gpu=True, here=here, remedy=f"{install}, {_AGAIN}", packages=packages)


def _of_other_cuda(hardware: Hardware, has: str) -> Lack | None:
    """Return that pip's libraries are built for another CUDA than the tool that loads them, or a later one than here.

    ONNX Runtime's TensorRT provider and TensorRT are built for one CUDA: "Requirements" of
    https://onnxruntime.ai/docs/execution-providers/TensorRT-ExecutionProvider.html. Nothing tells the CUDA of libraries
    that did not come with pip.
    """
    libraries = hardware.libraries
    if libraries is None or not shared_libraries.is_of_pip(libraries.names[0]):
        return None
    name = libraries.distribution
    theirs, own, driver = local_gpus.major_of(name), local_gpus.major_of(hardware.tool), cuda.supported()
    if theirs is not None and own not in (None, theirs):
        what, fitting = f"{hardware.tool} is built for CUDA {own}, and {name} for CUDA {theirs}", own
    elif driver is not None and (old := local_gpus.driver_lacks(name)):
        what, fitting = old, driver[0]
    else:
        return None
    package = requirement(f"{name}-cu{fitting}", libraries.version)
    others = " ".join([name, *(f"{name}-cu{theirs}{part}" for part in ("", "-libs", "-bindings"))])
    remedy = f"pip uninstall -y {others} && pip install {package}, {_AGAIN}"
    return Lack(has_gpu=True, here=f"{has}, but {what}", remedy=remedy, packages=(package,), in_the_way=others)


def _absent(hardware: Hardware) -> list[str]:
    names = () if hardware.libraries is None else hardware.libraries.names
    return [name for name in names if not shared_libraries.is_here(name)]


def _others(hardware: Hardware) -> str:
    """Return what this machine has instead of the GPUs in `hardware`: other GPUs, slices of GPUs, or hidden ones."""
    here = local_gpus.gpus()
    if not here:
        return local_gpus.hidden()
    near = [gpu.name for gpu in here if gpu.sm in {device.sm for device in hardware.devices}]
    known = (gpus.known(name) for name in near)
    named = next((f"; for it, a recipe says `target.device: {gpu.name}`" for gpu in known if gpu is not None), "")
    return f"this machine has {local_gpus.names()}{named}"


def for_ways(installed: Callable[[str], bool]) -> Mapping[str, list[str]]:
    """Return, for the name of each way to run models on a GPU, the list of things that the way lacks on this machine.

    The function `installed` tells whether a distribution is installed.
    """
    lacks = {}
    for way in (way for runtime in registry.runtimes().values() for way in runtime.ways):
        absent = [name for name in way.distributions if not installed(name)]
        absent += _modules_missing(way)
        absent += [name for name in way.libraries if not shared_libraries.is_here(name)]
        absent += [old for name in way.distributions if installed(name) and (old := local_gpus.driver_lacks(name))]
        lacks[way.name] = absent if cuda.devices() else [local_gpus.hidden() or _DRIVER, *absent]
    return lacks


def modules_missing(distribution: str) -> list[str]:
    """Return the packages that the GPU runtimes on `distribution` need beside it, and that Python does not find."""
    ways = (
        way for runtime in registry.runtimes().values() for way in runtime.ways if distribution in way.distributions
    )
    return sorted({name for way in ways for name in _modules_missing(way)})


def _modules_missing(way: Way) -> list[str]:
    return [name for name, module in way.modules if not _can_import(module)]


def _can_import(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around the module is not installed
        return False
