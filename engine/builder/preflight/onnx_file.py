"""The ONNX file: whether ONNX Runtime, which runs the original of every ONNX model, can load it on this machine."""

from __future__ import annotations

import importlib
import os

from engine.builder.preflight.checked_variant import CheckedVariant
from engine.kit.onnx import onnx_source
from engine.machine import imports

_QUIET = "ORT_DISABLE_TELEMETRY"
"""The variable that keeps ONNX Runtime from writing a database into the home folder, and from using the network."""


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where the installed ONNX Runtime cannot load the recipe's .onnx file."""
    path = subject.source
    if path is None or not path.is_file() or subject.facts is None or imports.location("onnxruntime") is None:
        return
    _import_quietly()
    from engine.runtimes.onnxruntime import loadable

    with subject.at("model", "source"):
        loadable.refuse(onnx_source.read(path), path, size=subject.facts.bytes)


def _import_quietly() -> None:
    """Import ONNX Runtime so that it writes no file: `recipe check` writes nothing."""
    before = os.environ.get(_QUIET)
    os.environ[_QUIET] = "1"
    try:
        importlib.import_module("onnxruntime")
    finally:
        if before is None:
            del os.environ[_QUIET]
        else:
            os.environ[_QUIET] = before
