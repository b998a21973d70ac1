"""Blobs: compiled models in the user's cache folder, so that a machine compiles each shape only once; no artifacts."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engine import digest
from engine.machine import cpu
from engine.runtimes.openvino import compiled, ir
from engine.store import user_cache

if TYPE_CHECKING:
    import openvino

KIND = "openvino"
"""The folder of the blobs in the user's cache folder."""


class Blobs:
    """The compiled models of the IR in a directory."""

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
