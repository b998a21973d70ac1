"""Passport: a file beside an engine with the GPU, the versions, the options and the graph of the engine's build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from engine import gpus
from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.runtimes import versions
from engine.runtimes.profiles import within
from engine.runtimes.tensorrt.api import EngineRuntime, engine_runtime
from engine.runtimes.tensorrt.plan_proof import PlanProof
from engine.step import Frozen

PLAN = "model.plan"
"""The name of a TensorRT engine's file in an artifact."""
FILE = "passport.json"
"""The name of the file with an engine's passport, in the engine's directory."""
_MOST_BYTES = 1 << 50
"""The largest size of an engine that a passport may state.

No engine has 1 PiB, so a larger number means that the passport is damaged.
"""
_SHOWN = 4
"""The largest number of complaints in one error."""


class EngineTensor(Frozen):
    """An input or output: numpy's name of its type, and for each axis its size, or its name where the size is free."""

    dtype: str
    shape: tuple[int | str, ...]


class Extents(Frozen):
    """The shapes of an input in one profile, or the values of a shape tensor."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


class Precision(Frozen):
    """The recipe's precision, and the number of layers per type in the parsed network and in the built engine."""

    asked: str
    network: Mapping[str, int]
    engine: Mapping[str, int] | None = None
    unknown: str = ""
    """The reason why the types of the engine's layers are not known; an empty text where the types are known."""


class Onnx(Frozen):
    """The ONNX graph that the engine is built from: its digest and its size in bytes, with weights."""

    digest: str
    bytes: int


class Passport(Frozen):
    """The content of an engine's passport: GPU, versions, options, profiles, tensors and graph."""

    format: Literal[1] = 1
    kind: EngineRuntime
    gpu: tuple[str, ...] = Field(min_length=1)
    """The GPU that built the engine, as its driver names it; for TensorRT-RTX the GPUs in the recipe."""
    sms: tuple[int, ...] = Field(min_length=1)
    """The compute capabilities of the GPUs in `gpu`, times ten: 75 for 7.5."""
    tensorrt: str
    cuda_runtime: str | None = None
    driver: str | None = None
    os: str
    arch: str
    options: Mapping[str, Any]
    profiles: tuple[Mapping[str, Extents], ...]
    values: tuple[Mapping[str, Extents], ...] = ()
    """The values of shape tensors by the name of the input, for each profile; empty where the engine has none."""
    precision: Precision
    plan: PlanProof | None = None
    """What the text of a TensorRT-RTX engine proves; None for TensorRT, and for a text of an unknown form."""
    inputs: Mapping[str, EngineTensor]
    outputs: Mapping[str, EngineTensor]
    onnx: Onnx
    key: str = ""
    """The digest of the key of the job that built the engine."""
    bytes: int = Field(ge=0, le=_MOST_BYTES)
    """The size of the engine's file in bytes."""

    @property
    def holds_code(self) -> bool:
        """Whether loading the engine runs libraries that are inside it: a lean runtime, or plugins.

        TensorRT puts them into version-compatible engines only.
        """
        return bool(self.options.get("version_compatible"))

    @property
    def plugins(self) -> tuple[str, ...]:
        """The file names of the libraries with plugins that the engine needs and does not hold."""
        return () if self.holds_code else tuple(self.options.get("plugins") or ())

    @property
    def shape_tensors(self) -> tuple[str, ...]:
        """The names of the inputs whose values are sizes of other tensors."""
        return tuple(dict.fromkeys(name for values in self.values for name in values))

    @property
    def input_list(self) -> dict[str, Input]:
        """The inputs of the engine by name, each as `Input`, the class that describes tensors of ONNX files."""
        return _inputs(self.inputs)

    @property
    def largest(self) -> dict[str, int]:
        """The largest size of each axis in any profile of the engine."""
        sizes: dict[str, int] = {}
        for profile in self.profiles:
            for name, extents in profile.items():
                for axis, size in zip(self.inputs[name].shape, extents.max, strict=True):
                    if isinstance(axis, str):
                        sizes[axis] = max(sizes.get(axis, 0), size)
        return sizes

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Tell whether a profile takes inputs of the given shapes; the answer is True if the engine has no profiles."""
        return not self.profiles or any(
            all(within(shapes[name], extents.min, extents.max) for name, extents in profile.items() if name in shapes)
            for profile in self.profiles
        )

    @property
    def output_list(self) -> dict[str, Input]:
        """The outputs of the engine by name, each as `Input`, the class that describes tensors of ONNX files."""
        return _inputs(self.outputs)


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


def save(directory: Path, passport: Passport) -> None:
    """Write the passport beside the engine in a directory."""
    (directory / FILE).write_text(passport.model_dump_json(indent=1) + "\n", "utf-8")


def load(place: Path) -> Passport:
    """Return the passport of an engine; `place` is the engine's file or its directory.

    Raises StepError where the passport is missing, or where its content is not that of a passport.
    """
    path = (place if place.is_dir() else place.parent) / FILE
    if not path.is_file():
        raise StepError(
            f"the TensorRT engine comes without its {FILE}",
            [f"looked for {path}"],
            "without it nobody can tell where the engine loads: build the engine again",
        )
    try:
        return Passport.model_validate(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, RecursionError) as error:  # a ValidationError is a ValueError
        facts = _complaints(error)[:_SHOWN]
        raise StepError(f"{path} is no passport of an engine", facts, "build the engine again") from error


def _complaints(error: Exception) -> list[str]:
    if isinstance(error, ValidationError):
        return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return str(error).splitlines()


def refuse_other_bytes(place: Path, passport: Passport) -> None:
    """Raise StepError where the engine's file is missing, or its size differs from the size in the passport."""
    plan = place / PLAN if place.is_dir() else place
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
    if not _version_fits(passport, here.tensorrt):
        rows.append(("tensorrt", passport.tensorrt, here.tensorrt))
    rows += [(name, getattr(passport, name), getattr(here, name)) for name in ("os", "arch")
             if getattr(passport, name) != getattr(here, name)]  # fmt: skip
    return rows


def _gpu_fits(passport: Passport, here: LoadingMachine) -> bool:
    if engine_runtime(passport.kind).anywhere:
        return here.sm in passport.sms
    mode = passport.options.get("compatibility", "none")
    if mode == "ampere-plus":
        return here.sm >= gpus.AMPERE
    if mode == "same-compute-capability":
        return here.sm in passport.sms
    return here.sm in passport.sms and any(_same(name, here.gpu) for name in passport.gpu)


def _same(one: str, other: str) -> bool:
    """Tell whether two names mean one GPU model.

    Two names that are not in the catalogue of GPUs mean the same GPU only if the names are equal.
    """
    return one == other or gpus.matches(one, other)


def _version_fits(passport: Passport, tensorrt: str) -> bool:
    compatible = bool(passport.options.get("version_compatible"))
    return versions.loads_engine(tensorrt, built_by=passport.tensorrt, version_compatible=compatible)


def _hint(passport: Passport, here: LoadingMachine) -> str:
    if engine_runtime(passport.kind).anywhere:
        return f"build it for this GPU as well: add {here.gpu} to target.device"
    return "build it here, or with tensorrt.compatibility or version_compatible for more than one kind of machine"


def _listed(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _inputs(tensors: Mapping[str, EngineTensor]) -> dict[str, Input]:
    return {name: Input(name, value.dtype, value.shape) for name, value in tensors.items()}
