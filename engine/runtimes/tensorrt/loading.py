"""Loading: what a machine that loads an engine asks the engine's passport, and the engines that it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import gpus
from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.profiles import within
from engine.runtimes.tensorrt import passport as passports
from engine.runtimes.tensorrt.api import EngineRuntime, product
from engine.runtimes.tensorrt.passport import Passport
from engine.runtimes.tensorrt.prepared_graph import EngineTensor
from engine.step import Frozen
from engine.text import versions


class LoadingMachine(Frozen):
    """A machine that is to load an engine.

    `gpu` is the GPU's name in the driver, `tensorrt` the installed version of TensorRT.
    """

    kind: EngineRuntime
    gpu: str
    sm: int
    tensorrt: str
    os: str
    arch: str


def tensors(described: Mapping[str, EngineTensor]) -> dict[str, Input]:
    """Return the inputs or outputs of an engine, each as `Input`, the class that describes tensors of ONNX files."""
    return {name: Input(name, value.dtype, value.shape) for name, value in described.items()}


def takes(passport: Passport, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Tell whether a profile takes inputs of the given shapes; the answer is True if the engine has no profiles."""
    return not passport.profiles or any(
        all(within(shapes[name], extents.min, extents.max) for name, extents in profile.items() if name in shapes)
        for profile in passport.profiles
    )


def refuse_other_bytes(place: Path, passport: Passport) -> None:
    """Raise StepError where the engine's file is missing, or its size differs from the size in the passport."""
    plan = place / passports.PLAN if place.is_dir() else place
    if not plan.is_file():
        raise StepError(f"there is no engine at {plan}", hint="its passport is there: build the engine again")
    size = plan.stat().st_size
    if size != passport.bytes:
        raise StepError(
            f"{plan} is not the engine that its passport is about",
            [f"the passport says {passport.bytes} bytes, the file has {size}"],
            "the file is damaged or of another build: build the engine again, or take both files from one build",
        )


def refuse_elsewhere(passport: Passport, here: LoadingMachine) -> None:
    """Raise StepError where an engine must not be loaded on a machine; the error lists the fields that differ.

    The rules are NVIDIA's ("Engine Compatibility" in the TensorRT documentation): an engine runs with one version of
    TensorRT, on one operating system, and on the GPU model that built it. The option `compatibility` lets an engine run
    on other GPU models than the GPU that built the engine. A version-compatible engine also runs with later versions of
    TensorRT that have the same major number.
    """
    differing = [
        f"{field}: the engine is for {_listed(expected)}, this machine has {actual}"
        for field, expected, actual in _differing(passport, here)
    ]
    if differing:
        raise StepError("the TensorRT engine is not for this machine", differing, _hint(passport, here))


def _differing(passport: Passport, here: LoadingMachine) -> list[tuple[str, str | tuple[Any, ...], object]]:
    if passport.kind != here.kind:
        return [("kind", passport.kind, here.kind)]
    rows: list[tuple[str, str | tuple[Any, ...], object]] = []
    if not _gpu_fits(passport, here):
        rows.append(("sm", passport.sms, here.sm) if here.sm not in passport.sms else ("gpu", passport.gpu, here.gpu))
    compatible = bool(passport.options.get("version_compatible"))
    if not versions.loads_engine(here.tensorrt, built_by=passport.tensorrt, version_compatible=compatible):
        rows.append(("tensorrt", passport.tensorrt, here.tensorrt))
    rows += [(name, getattr(passport, name), getattr(here, name)) for name in ("os", "arch")
             if getattr(passport, name) != getattr(here, name)]  # fmt: skip
    return rows


def _gpu_fits(passport: Passport, here: LoadingMachine) -> bool:
    if product(passport.kind).anywhere:
        return here.sm in passport.sms
    mode = passport.options.get("compatibility", "none")
    if mode == "ampere-plus":
        return here.sm >= gpus.AMPERE
    if mode == "same-compute-capability":
        return here.sm in passport.sms
    # A name that is not in the catalogue of GPUs matches only itself.
    same = any(name == here.gpu or gpus.matches(name, here.gpu) for name in passport.gpu)
    return here.sm in passport.sms and same


def _hint(passport: Passport, here: LoadingMachine) -> str:
    if product(passport.kind).anywhere:
        return f"build it for this GPU as well: add {here.gpu} to target.device"
    return "build it here, or with tensorrt.compatibility or version_compatible for more than one kind of machine"


def _listed(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)
