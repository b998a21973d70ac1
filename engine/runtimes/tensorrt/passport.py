"""The passport beside a TensorRT engine: what built it, from what, and where it may be loaded."""

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
from engine.runtimes.tensorrt.api import EngineRuntime, meant
from engine.step import Frozen

PLAN = "model.plan"
"""A TensorRT engine in an artifact."""
FILE = "passport.json"
"""What is known of it, beside it."""


class EngineTensor(Frozen):
    """An input or output: numpy's name of its type, and an extent or an axis name per dimension."""

    dtype: str
    shape: tuple[int | str, ...]


class Extents(Frozen):
    """What an input's shape may be in one profile."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


class Precision(Frozen):
    """What was asked for, and how many layers give each type: of the network that was read, of the engine that came."""

    asked: str
    network: Mapping[str, int]
    engine: Mapping[str, int] | None = None
    unknown: str = ""
    """Why nothing is told of the engine's layers."""


class Onnx(Frozen):
    """The graph that went in: its digest and its bytes, weights included."""

    digest: str
    bytes: int


class Passport(Frozen):
    """What is known of an engine."""

    format: Literal[1] = 1
    kind: EngineRuntime
    gpu: tuple[str, ...] = Field(min_length=1)
    """The GPU that built it, as its driver names it; for TensorRT-RTX those that it is for, as the recipe does."""
    sms: tuple[int, ...] = Field(min_length=1)
    """Their compute capabilities, times ten."""
    tensorrt: str
    cuda_runtime: str | None = None
    driver: str | None = None
    os: str
    arch: str
    options: Mapping[str, Any]
    profiles: tuple[Mapping[str, Extents], ...]
    precision: Precision
    inputs: Mapping[str, EngineTensor]
    outputs: Mapping[str, EngineTensor]
    onnx: Onnx
    key: str = ""
    """The digest of the key of the job that built it."""
    bytes: int = Field(ge=0, le=1 << 50)

    @property
    def holds_code(self) -> bool:
        """Whether libraries for the host are inside: a lean runtime, or plugins. Loading it runs them."""
        return bool(self.options.get("version_compatible") or self.options.get("plugins"))

    @property
    def input_list(self) -> dict[str, Input]:
        """What it takes, as ONNX files tell it."""
        return _inputs(self.inputs)

    @property
    def largest(self) -> dict[str, int]:
        """The most that any profile allows, by axis."""
        found: dict[str, int] = {}
        for profile in self.profiles:
            for name, extents in profile.items():
                for axis, size in zip(self.inputs[name].shape, extents.max, strict=True):
                    if isinstance(axis, str):
                        found[axis] = max(found.get(axis, 0), size)
        return found

    def takes(self, shapes: Mapping[str, tuple[int, ...]]) -> bool:
        """Say whether a profile takes inputs of these shapes; an engine without profiles takes those of its graph."""
        return not self.profiles or any(
            all(within(shapes[name], extents.min, extents.max) for name, extents in profile.items() if name in shapes)
            for profile in self.profiles
        )

    @property
    def output_list(self) -> dict[str, Input]:
        """What it gives, likewise."""
        return _inputs(self.outputs)


class Here(Frozen):
    """A machine that is to load an engine. `gpu` is the driver's name, `tensorrt` the version of `kind`'s package."""

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
    """Return the passport of an engine, given its file or its directory.

    Raises StepError where there is none, or it is no passport.
    """
    path = (place if place.is_dir() else place.parent) / FILE
    if not path.is_file():
        raise StepError(
            f"the TensorRT engine comes without its {FILE}",
            [f"looked for {path}"],
            "nobody can tell what built it: build it again",
        )
    try:
        return Passport.model_validate(json.loads(path.read_text("utf-8")))
    except ValidationError as error:
        facts = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:4]]
        raise StepError(f"{path} is no passport of an engine", facts, "build the engine again") from error
    except (OSError, ValueError, RecursionError) as error:
        facts = str(error).splitlines()[:4]
        raise StepError(f"{path} is no passport of an engine", facts, "build the engine again") from error


def refuse_other_bytes(place: Path, said: Passport) -> None:
    """Raise StepError where the engine is not there, or of another size than its passport says."""
    plan = place / PLAN if place.is_dir() else place
    if not plan.is_file():
        raise StepError(f"there is no engine at {plan}", hint="its passport is there: build the engine again")
    size = plan.stat().st_size
    if size != said.bytes:
        raise StepError(
            f"{plan} is not the engine that its passport is about",
            [f"the passport says {said.bytes} bytes, the file has {size}"],
            "it is damaged or another one: build it again, or take both files from where they come from",
        )


def refuse_elsewhere(said: Passport, here: Here) -> None:
    """Raise StepError, naming the fields, where an engine must not be loaded on a machine.

    The rules are NVIDIA's ("Engine Compatibility" in the TensorRT documentation): an engine is for one version of
    TensorRT, one system, and the GPU model that built it, as far as its compatibility mode does not widen that.
    A version-compatible one runs on the same and later versions of its major.
    """
    differing = [
        f"{field}: the engine is for {_listed(wanted)}, this machine has {found}"
        for field, wanted, found in _differing(said, here)
    ]
    if differing:
        raise StepError("the TensorRT engine is not for this machine", differing, _hint(said, here))


def _differing(said: Passport, here: Here) -> list[tuple[str, str | tuple[Any, ...], object]]:
    if said.kind != here.kind:
        return [("kind", said.kind, here.kind)]
    rows: list[tuple[str, str | tuple[Any, ...], object]] = []
    if not _gpu_fits(said, here):
        rows.append(("sm", said.sms, here.sm) if here.sm not in said.sms else ("gpu", said.gpu, here.gpu))
    if not _version_fits(said, here.tensorrt):
        rows.append(("tensorrt", said.tensorrt, here.tensorrt))
    rows += [(name, getattr(said, name), getattr(here, name)) for name in ("os", "arch")
             if getattr(said, name) != getattr(here, name)]  # fmt: skip
    return rows


def _gpu_fits(said: Passport, here: Here) -> bool:
    if meant(said.kind).anywhere:
        return here.sm in said.sms
    mode = said.options.get("compatibility", "none")
    if mode == "ampere-plus":
        return here.sm >= gpus.AMPERE
    if mode == "same-compute-capability":
        return here.sm in said.sms
    return here.sm in said.sms and any(_same(name, here.gpu) for name in said.gpu)


def _same(one: str, other: str) -> bool:
    """Say whether two names of a driver mean one model; those that the catalogue lacks must be the same."""
    return one == other or gpus.matches(one, other)


def _version_fits(passport: Passport, tensorrt: str) -> bool:
    compatible = bool(passport.options.get("version_compatible"))
    return versions.loads_engine(tensorrt, built_by=passport.tensorrt, version_compatible=compatible)


def _hint(said: Passport, here: Here) -> str:
    if meant(said.kind).anywhere:
        return f"build it for this GPU as well: add {here.gpu} to target.device"
    return "build it here, or with tensorrt.compatibility or version_compatible for more than one kind of machine"


def _listed(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _inputs(tensors: Mapping[str, EngineTensor]) -> dict[str, Input]:
    return {name: Input(name, value.dtype, value.shape) for name, value in tensors.items()}
