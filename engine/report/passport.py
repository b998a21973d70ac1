"""The passport of a compiled model as text: what built the model, from which original, and where it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.report import grid, plans
from engine.runtimes import registry
from engine.runtimes.tensorrt import prepared_graph
from engine.runtimes.tensorrt.passport import Passport
from engine.text import lists, sizes

if TYPE_CHECKING:
    from engine.runtimes.inductor.passport import CompiledTensor, Pt2Passport
    from engine.runtimes.tensorrt.prepared_graph import EngineTensor, Extents


def text(passport: Passport | Pt2Passport) -> str:
    """Return a passport as text, without default options, and with "?" for what could change the terminal."""
    fields = _rows(passport) if isinstance(passport, Passport) else _pt2_rows(passport)
    rows = [(title, "".join(each if each.isprintable() else "?" for each in value)) for title, value in fields]
    return "".join(f"{line}\n" for line in grid.lines(rows, indent=2))


def _rows(passport: Passport) -> Iterator[tuple[str, str]]:
    sms = ", ".join(f"sm_{sm}" for sm in passport.sms)
    yield "engine", f"{registry.find(passport.kind).title} {passport.tensorrt}, {sizes.decimal(passport.bytes)}"
    yield ("for" if _anywhere(passport) else "built on"), f"{' and '.join(passport.gpu)} ({sms})"
    yield "runs on", _where(passport)
    yield "system", f"{passport.os} {passport.arch}"
    if passport.cuda_runtime:
        yield "CUDA", f"runtime {passport.cuda_runtime}, driver {passport.driver or 'unknown'}"
    precision = passport.precision
    yield "precision", f"{precision.asked} asked for; layers of the network: {lists.counts(precision.network or {})}"
    yield "built layers", lists.counts(precision.engine or {}) or f"unknown: {precision.unknown}"
    if passport.plan is not None:
        for number, line in enumerate(plans.proof(passport.plan)):
            yield ("" if number else "kernels"), line.strip()
    options = [
        f"{name}: {value}"
        for name, value in passport.options.items()
        if value not in (None, False, "none", {}, [], ()) or (name == "tf32" and value is False)
    ]
    yield "options", ", ".join(options) or "TensorRT's own"
    for number, profile in enumerate(passport.profiles):
        yield f"profile {number}", prepared_graph.in_words(profile) or "fixed shapes"  # 1x1 / 1x16 / 1x128
    for number, values in enumerate(passport.values):
        yield f"values {number}", ", ".join(f"{name} {_values(ends)}" for name, ends in values.items())
    yield "takes", _tensors(passport.inputs)
    yield "gives", _tensors(passport.outputs)
    yield "ONNX", f"{passport.onnx.digest}, {sizes.decimal(passport.onnx.bytes)}"
    yield "key", passport.key or "built outside of a store"


def _pt2_rows(passport: Pt2Passport) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each field of the passport of a model that AOTInductor compiled."""
    machine = passport.machine
    yield "model", f"{registry.find(passport.kind).title} of torch {machine.torch}, {sizes.decimal(passport.bytes)}"
    yield "runs on", f"{machine.gpu} (sm_{machine.sm})" if machine.gpu else f"CPUs with {' '.join(machine.isa)}"
    yield "system", f"{machine.os} {machine.arch}, C++ compiler {passport.cxx}"
    if machine.gpu:
        yield "CUDA", f"runtime {machine.cuda}, driver {machine.driver}.x"
    yield "precision", passport.precision
    yield "axes", ", ".join(f"{axis} {each}" for axis, each in passport.axes.items()) or "fixed shapes"
    yield "takes", _tensors(passport.inputs)
    yield "gives", _tensors(passport.outputs)
    yield "key", passport.key or "built outside of a store"


def _anywhere(passport: Passport) -> bool:
    """Tell whether the engine was built without a GPU, as TensorRT-RTX builds engines."""
    return not registry.find(passport.kind).loads_in_triton


def _where(passport: Passport) -> str:
    """Return the GPUs and the version of TensorRT that the engine runs with."""
    version = f"TensorRT {passport.tensorrt}"
    if passport.options.get("version_compatible"):
        version = f"{version} and later of its major"
    sms = " or ".join(f"sm_{sm}" for sm in passport.sms)
    if _anywhere(passport):
        return f"GPUs of {sms}, with {registry.find(passport.kind).title} {passport.tensorrt}"
    gpu = {
        "ampere-plus": "any GPU from sm_80 on",
        "same-compute-capability": f"GPUs of {sms}",
    }.get(str(passport.options.get("compatibility")), f"{' and '.join(passport.gpu)} only")
    return f"{gpu}, with {version}"


def _values(ends: Extents) -> str:
    """Return the smallest, usual and largest values of a shape tensor: "[1, 16] / [4, 16] / [8, 16]"."""
    return " / ".join(str([*end]) for end in (ends.min, ends.opt, ends.max))


def _tensors(tensors: Mapping[str, EngineTensor] | Mapping[str, CompiledTensor]) -> str:
    return ", ".join(f"{name} {value.dtype} {' x '.join(map(str, value.shape))}" for name, value in tensors.items())
