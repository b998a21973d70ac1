"""Runners of OpenVINO's compiled models on a CPU, and their blobs, so that a machine compiles each shape only once."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.kit.onnx import onnx_files
from engine.machine import cpu
from engine.runtimes.execution import Execution
from engine.runtimes.openvino import compiled, ir, multiplications
from engine.runtimes.openvino.compiled import Calls, Shapes
from engine.runtimes.runner import RivalModel, Runner
from engine.store import user_cache

if TYPE_CHECKING:
    import openvino

__all__ = ["rival", "runner"]
KIND = "openvino"
"""The folder of the blobs in the user's cache folder."""


def runner(
    directory: Path, execution: Execution, *, name: str, threads: int = 0, new_tokens: int | None = None
) -> Runner:
    """Return the runner of the IR in `directory`. Raises StepError where OpenVINO cannot compile the model."""
    del execution, new_tokens  # OpenVINO has no options here, and no models that generate text
    return _of(ir.read(directory / ir.MODEL), name, threads, compile=Blobs(directory).compiled)


def rival(original: RivalModel, *, name: str, precision: str, execution: Execution, threads: int) -> Runner:
    """Return the runner of an exported model in fp32, as OpenVINO reads it from the ONNX file."""
    del precision, execution  # fp32 on the CPU: the only way that this runtime offers for rivals
    options = {**compiled.LATENCY, **compiled.FP32}
    return _of(ir.of_onnx(original.exported / onnx_files.MODEL), name, threads, options=options)


def _of(
    model: openvino.Model,
    name: str,
    threads: int,
    *,
    options: Mapping[str, str] = compiled.LATENCY,
    compile: Callable[..., openvino.CompiledModel] = compiled.compiled,  # noqa: A002 - the field's term
) -> Runner:
    shapes = Shapes(model, lambda each: Calls(each, threads=threads, options=options, compile=compile))
    return Runner(
        name,
        shapes.run,
        shapes.prepare,
        takes=shapes.takes,
        inputs=ir.described(model, model.inputs),
        work=lambda inputs: multiplications.multiplications(model, shapes.fed(inputs)),
    )


class Blobs:
    """The compiled models of the IR in a directory, in the user's cache folder; they are no artifacts."""

    def __init__(self, directory: Path) -> None:
        """Raises OSError where a file of the IR cannot be read."""
        self._files = {name: digest.of_file(directory / name) for name in ir.FILES}

    def compiled(self, model: openvino.Model, *, threads: int, options: Mapping[str, str]) -> openvino.CompiledModel:
        """Return the IR, or a copy of it for fixed shapes, compiled for this CPU: from its blob where there is one.

        Raises StepError where OpenVINO cannot compile the model.
        """
        import openvino

        used = compiled.with_threads(options, threads)
        name = self._name(model, used)
        kept = user_cache.read_blob(KIND, name)
        if kept is not None:
            try:
                return openvino.Core().import_model(io.BytesIO(kept), "CPU", used)
            except RuntimeError:  # OpenVINO refuses a blob of another version or CPU
                user_cache.drop_blob(KIND, name)
        fresh = compiled.compiled(model, options=used)
        user_cache.keep_blob(KIND, name, fresh.export_model().getvalue())
        return fresh

    def _name(self, model: openvino.Model, options: dict[str, str]) -> str:
        """Return a digest of everything that shapes the compiled model."""
        import openvino

        rows = {
            **self._files,
            "shapes": json.dumps([str(value.get_partial_shape()) for value in model.inputs]),
            "options": json.dumps(options, sort_keys=True),
            "openvino": openvino.get_version(),
            "cpu": cpu.model(),
            "flags": cpu.description().get("flags", ""),
        }
        return digest.of_rows(sorted(rows.items()))
