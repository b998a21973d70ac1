"""Passport: a file beside a compiled model with the machine, the versions, the axes and the key of its build."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from engine import gpus
from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.machine import cuda, tools
from engine.machine import facts as machine_facts
from engine.runtimes import passport_file
from engine.runtimes.devices import CudaGpu
from engine.runtimes.inductor import facts
from engine.step import Frozen

MODEL = "model.pt2"
"""The name of a compiled model's file, which Triton's PyTorch backend expects, too."""
FILES = (MODEL, passport_file.FILE)
TITLE = "model compiled by AOTInductor"


class AxisSizes(Frozen):
    """The sizes that a compiled model takes for an axis; without `max`, sizes have no upper limit."""

    min: int = Field(ge=0)
    max: int | None = None

    def __contains__(self, size: int) -> bool:
        return self.min <= size and (self.max is None or size <= self.max)

    def __str__(self) -> str:
        return f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"


class CompiledTensor(Frozen):
    """An input or output: numpy's name of its type, and for each axis its size, or its name where the size is free."""

    dtype: str
    shape: tuple[int | str, ...]


class CompilingMachine(Frozen):
    """What native code depends on: its system, its CPU or GPU, and the versions of what compiles and loads it."""

    torch: str
    os: str
    arch: str
    isa: tuple[str, ...]
    """The instructions of the CPU by which libraries choose kernels, as the fact `cpu.isa` has them."""
    gpu: str | None = None
    """The GPU, as its driver names it; None for a model on a CPU."""
    sm: int | None = None
    cuda: str | None = None
    driver: str | None = None
    """The major version of NVIDIA's driver."""


class Pt2Passport(Frozen):
    """The content of a compiled model's passport."""

    format: Literal[1] = 1
    kind: Literal["inductor"] = "inductor"
    machine: CompilingMachine
    cxx: str
    """The version of the C++ compiler."""
    precision: str
    axes: Mapping[str, AxisSizes]
    """The sizes of each free axis."""
    inputs: Mapping[str, CompiledTensor]
    outputs: Mapping[str, CompiledTensor]
    key: str = ""
    """The digest of the key of the job that compiled the model."""
    bytes: int = Field(ge=0)

    def tensors(self) -> tuple[dict[str, Input], dict[str, Input]]:
        """Return the inputs and the outputs in their order, each as `Input`, which describes tensors of ONNX files."""
        each = ({name: Input(name, one.dtype, one.shape) for name, one in part.items()}
                for part in (self.inputs, self.outputs))  # fmt: skip
        return next(each), next(each)

    def misfits(self, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
        """Return a line for each input whose shape the model does not take; AOTInductor itself checks no shape."""
        sizes: dict[str, int] = {}
        lines = []
        for name, tensor in self.inputs.items():
            shape = shapes[name]
            fits = len(shape) == len(tensor.shape)
            for size, axis in zip(shape, tensor.shape, strict=False):
                fits &= (
                    size in self.axes[axis] and sizes.setdefault(axis, size) == size
                    if isinstance(axis, str)
                    else size == axis
                )
            if not fits:
                lines.append(f"{name}: {list(shape)} instead of [{', '.join(map(str, tensor.shape))}]")
        return [*lines, *(f"{axis}: {sizes}" for axis, sizes in self.axes.items())] if lines else []


def load(path: Path) -> Pt2Passport:
    """Return the passport of a compiled model; `path` is the model's file or its directory.

    Raises StepError where the passport is missing or none, or where the model's file has another size than it says.
    """
    passport = passport_file.load(path, Pt2Passport, TITLE)
    file = path / MODEL if path.is_dir() else path
    size = file.stat().st_size if file.is_file() else None
    if size != passport.bytes:
        facts_ = [f"the passport says {passport.bytes} bytes, the file {file} has {size}"]
        raise StepError(f"{file.name} is not the model that its passport is about", facts_, "build it again")
    return passport


def here(gpu: CudaGpu | None) -> CompilingMachine:
    """Return what this machine is for a model on a CPU, or on one of its GPUs."""
    machine = CompilingMachine(
        torch=tools.version_of("torch"),
        os=platform.system(),
        arch=platform.machine(),
        isa=tuple(machine_facts.cpu_isa().split()),
    )
    if gpu is None:
        return machine
    driver = facts.driver_major().value
    return machine.model_copy(update={"gpu": gpu.name, "sm": gpu.sm, "cuda": cuda.runtime_version(), "driver": driver})


def refuse_elsewhere(passport: Pt2Passport, machine: CompilingMachine) -> None:
    """Raise StepError where a compiled model must not be loaded on `machine`; the error names the fields that differ.

    Loading runs native code, so nothing of the model is read before.
    """
    built = passport.machine
    lines = [
        f"{name}: the model is for {theirs}, this machine has {ours}"
        for name, theirs, ours in (
            (name, getattr(built, name), getattr(machine, name)) for name in CompilingMachine.model_fields
        )
        if theirs != ours and name not in ("isa", "gpu")
    ]
    if built.gpu and machine.gpu and built.gpu != machine.gpu and not gpus.matches(built.gpu, machine.gpu):
        lines.append(f"gpu: the model is for {built.gpu}, this machine has {machine.gpu}")
    if lacking := sorted(set(built.isa) - set(machine.isa)):
        lines.append(f"isa: the model needs {' '.join(lacking)}, which this CPU lacks")
    if lines:
        raise StepError(f"the {TITLE} is not for this machine", lines, "build it again on this machine")
