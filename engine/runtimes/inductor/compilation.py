"""Compilation: a module of PyTorch becomes one file of native code, by `torch.export` and AOTInductor."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.onnx.onnx_files import Input
from engine.kit.reference.model_loading import quiet
from engine.runtimes import axes, profiles
from engine.runtimes.inductor import facts
from engine.runtimes.inductor.passport import AxisSizes, CompiledTensor
from engine.text import reasons

if TYPE_CHECKING:
    import torch

    from engine.recipe.values import Profile

DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_TOKENS = "sequence"
OTHER = "use runtime: onnxruntime, whose exporters may take the model"
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""The variables that name the folders in which Inductor and the Triton language keep what they have compiled."""


class UnfitModuleError(StepError):
    """The error of a module that `torch.export` cannot have, on any machine with this version of PyTorch."""


@dataclass(frozen=True)
class Compiled:
    """A compiled model: the sizes of its free axes, and its inputs and outputs in their order."""

    axes: Mapping[str, AxisSizes]
    inputs: Mapping[str, CompiledTensor]
    outputs: Mapping[str, CompiledTensor]


def axis_sizes(inputs: Mapping[str, Input], stated: Sequence[Profile], longest: int | None) -> dict[str, AxisSizes]:
    """Return the sizes of each free axis of the inputs: from the least to the greatest size in any profile.

    Without profiles an axis has any size; that of tokens has at most `longest`. Raises StepError for a profile that
    does not suit the inputs.
    """
    shapes = axes.shapes(inputs)
    free = axes.free(shapes)
    if not stated:
        return {axis: AxisSizes(min=1, max=longest if axis == _TOKENS else None) for axis in free}
    profiles.shapes(inputs, stated)
    named = [axes.by_name(profile, shapes) for profile in stated]
    return {
        axis: AxisSizes(min=min(int(each[axis].min) for each in named), max=max(int(each[axis].max) for each in named))
        for axis in free
    }


def compiled(
    module: torch.nn.Module, out: Path, *, sizes: Mapping[str, AxisSizes], precision: str, device: str, scratch: Path
) -> Compiled:
    """Compile a module of `torch_models.load` for a device, "cpu" or "cuda:0", and write it into the file `out`.

    The weights and the computation are in the precision; the inputs and outputs keep their types. An axis with one size
    is fixed. Raises UnfitModuleError where `torch.export` cannot have the module, and StepError where AOTInductor
    cannot compile it, or where there is no C++ compiler.
    """
    import torch

    if facts.compiler().value == facts.NO_COMPILER:
        raise StepError(f"AOTInductor compiles with {facts.COMPILER}, and none is on the PATH", hint="apt install g++")
    typed = _typed(module, getattr(torch, DTYPES[precision])).to(device)
    fixed = {axis: size.min for axis, size in sizes.items() if size.min == size.max}
    free = {axis: size for axis, size in sizes.items() if axis not in fixed}
    shapes = {
        name: tuple(fixed.get(axis, axis) if isinstance(axis, str) else axis for axis in module.input_specs[name].shape)
        for name in module.input_names
    }
    program = _exported(typed, module.input_specs, shapes, free, device)
    with _caches(scratch), quiet(), torch.no_grad():
        try:
            torch._inductor.aoti_compile_and_package(  # noqa: SLF001 - its public name, which torch's documents use
                program, package_path=str(out), inductor_configs=_settings()
            )
        except Exception as error:  # Inductor, the Triton language and compilers raise errors of any kind
            raise StepError("AOTInductor cannot compile the model", reasons.facts(error), OTHER) from error
    inputs = {name: CompiledTensor(dtype=module.input_specs[name].dtype, shape=shape) for name, shape in shapes.items()}
    return Compiled(free, inputs, _outputs(program, module.output_names, shapes))


def _settings() -> dict[str, Any]:
    """Return Inductor's settings, with which the code depends on nothing that the key of the job does not have.

    The number of threads is not in the code. One process compiles, which leaves no process behind. On x86-64 the code
    uses the instructions that Inductor names itself, which follow from the fact `cpu.isa`, and not all of this CPU.
    """
    settings: dict[str, Any] = {
        "compile_threads": 1,
        "cpp.cxx": (shutil.which(facts.COMPILER),),
        "cpp.dynamic_threads": True,
        "aot_inductor.precompile_headers": False,
    }
    return settings | ({"cpp.march": ""} if platform.machine() == "x86_64" else {})


def _typed(module: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Return a module that computes in `dtype`, whose floating-point inputs and outputs stay in float32."""
    import torch

    class Typed(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module.to(dtype)

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            given = (each.to(dtype) if each.is_floating_point() else each for each in tensors)
            return tuple(each.float() if each.is_floating_point() else each for each in self.module(*given))

    return Typed().eval()


def _exported(
    typed: torch.nn.Module,
    specs: Mapping[str, Input],
    shapes: Mapping[str, tuple[int | str, ...]],
    free: Mapping[str, AxisSizes],
    device: str,
) -> torch.export.ExportedProgram:
    """Return the exported program. Raises UnfitModuleError where the module has none with these axes."""
    import torch

    traced = _traced(free)
    dims = {axis: torch.export.Dim(f"axis_{number}", min=size.min, max=size.max)
            for number, (axis, size) in enumerate(free.items())}  # fmt: skip
    example = tuple(
        torch.ones(
            [traced[axis] if isinstance(axis, str) else axis for axis in shape],
            dtype=getattr(torch, specs[name].dtype),
            device=device,
        )
        for name, shape in shapes.items()
    )
    named = tuple({index: dims[axis] for index, axis in enumerate(shape) if axis in dims} for shape in shapes.values())
    try:
        with quiet(), torch.no_grad():
            return torch.export.export(typed, example, dynamic_shapes=(named,))
    except Exception as error:  # any layer may do what cannot be traced
        ranges = [f"{axis}: {size}" for axis, size in free.items()]
        raise UnfitModuleError("torch.export cannot have the model", [*reasons.facts(error), *ranges], OTHER) from error


def _traced(free: Mapping[str, AxisSizes]) -> dict[str, int]:
    """Return the size of each free axis in the example: at least 2, which is no special size, and all different."""
    sizes: dict[str, int] = {}
    for axis, size in free.items():
        chosen = max(2, size.min)
        while chosen in sizes.values() and chosen + 1 in size:
            chosen += 1
        sizes[axis] = chosen
    return sizes


def _outputs(
    program: torch.export.ExportedProgram, names: Sequence[str], shapes: Mapping[str, tuple[int | str, ...]]
) -> dict[str, CompiledTensor]:
    """Return the outputs; an axis has the name of the input's axis whose size it has, or one of its own."""
    values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    known = {
        str(extent): axis
        for name, shape in zip(program.graph_signature.user_inputs, shapes.values(), strict=True)
        for extent, axis in zip(values[name].shape, shape, strict=True)
        if isinstance(axis, str)
    }
    outputs = {}
    for name, result in zip(names, program.graph_signature.user_outputs, strict=True):
        value = values[result]
        shape = tuple(
            extent if isinstance(extent, int) else known.get(str(extent), f"{name}_{index}")
            for index, extent in enumerate(value.shape)
        )
        outputs[name] = CompiledTensor(dtype=str(value.dtype).removeprefix("torch."), shape=shape)
    return outputs


@contextlib.contextmanager
def _caches(scratch: Path) -> Iterator[None]:
    """Let Inductor and the Triton language keep their files in a new folder below `scratch`, which is then removed."""
    before = {name: os.environ.get(name) for name in _CACHES}
    with TemporaryDirectory(dir=scratch, prefix="inductor-") as folder:
        os.environ.update({name: str(Path(folder) / name.lower()) for name in _CACHES})
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
