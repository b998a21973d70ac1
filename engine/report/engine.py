"""The passport of a TensorRT engine as a person reads it: what built this, from what, and for which machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.report import grid
from engine.runtimes import registry
from engine.text import sizes

if TYPE_CHECKING:
    from engine.runtimes.tensorrt.passport import EngineTensor, Extents, Passport


def text(said: Passport) -> str:
    """Return a line per thing that is known; options at their default are left out."""
    rows = [(title, "".join(each if each.isprintable() else "?" for each in value)) for title, value in _rows(said)]
    return "".join(f"{line}\n" for line in grid.lines(rows, indent=2))


def _rows(said: Passport) -> Iterator[tuple[str, str]]:
    sms = ", ".join(f"sm_{sm}" for sm in said.sms)
    yield "engine", f"{registry.find(said.kind).title} {said.tensorrt}, {sizes.decimal(said.bytes)}"
    yield ("for" if _anywhere(said) else "built on"), f"{' and '.join(said.gpu)} ({sms})"
    yield "runs on", _where(said)
    yield "system", f"{said.os} {said.arch}"
    if said.cuda_runtime:
        yield "CUDA", f"runtime {said.cuda_runtime}, driver {said.driver or 'unknown'}"
    yield "precision", f"{said.precision.asked} asked for; layers of the network: {_counted(said.precision.network)}"
    yield "built layers", _counted(said.precision.engine) or f"unknown: {said.precision.unknown}"
    told = [
        f"{name}: {value}" for name, value in said.options.items() if value not in (None, False, "none", {}, [], ())
    ]
    yield "options", ", ".join(told) or "TensorRT's own"
    for number, profile in enumerate(said.profiles):
        yield f"profile {number}", _profile(profile) or "fixed shapes"
    yield "takes", _tensors(said.inputs)
    yield "gives", _tensors(said.outputs)
    yield "ONNX", f"{said.onnx.digest}, {sizes.decimal(said.onnx.bytes)}"
    yield "key", said.key or "built outside of a store"


def _anywhere(said: Passport) -> bool:
    """Tell whether the engine was built without its GPU."""
    return not registry.find(said.kind).loads_in_triton


def _where(said: Passport) -> str:
    version = f"TensorRT {said.tensorrt}"
    if said.options.get("version_compatible"):
        version = f"{version} and later of its major"
    sms = " or ".join(f"sm_{sm}" for sm in said.sms)
    if _anywhere(said):
        return f"GPUs of {sms}, with {registry.find(said.kind).title} {said.tensorrt}"
    gpu = {
        "ampere-plus": "any GPU from sm_80 on",
        "same-compute-capability": f"GPUs of {sms}",
    }.get(str(said.options.get("compatibility")), f"{' and '.join(said.gpu)} only")
    return f"{gpu}, with {version}"


def _counted(layers: Mapping[str, int] | None) -> str:
    return ", ".join(f"{count} {name}" for name, count in (layers or {}).items())


def _profile(profile: Mapping[str, Extents]) -> str:
    return ", ".join(
        f"{name} {' / '.join('x'.join(map(str, shape)) for shape in (ends.min, ends.opt, ends.max))}"
        for name, ends in profile.items()
    )


def _tensors(tensors: Mapping[str, EngineTensor]) -> str:
    return ", ".join(f"{name} {value.dtype} {' x '.join(map(str, value.shape))}" for name, value in tensors.items())
