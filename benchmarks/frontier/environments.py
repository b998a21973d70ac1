"""Environments: virtual environments of other tools, made once with pinned packages and kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recipe-benchmarks"
"""The folder of the environments, outside of the clone."""
_TORCH = "torch==2.13.0"
PINS: Mapping[str, tuple[str, ...]] = {
    "olive": (
        "olive-ai==0.13.0",
        "onnxruntime==1.31.1",
        "transformers==5.23.0",
        "onnxscript==0.7.2",
        "datasets==5.2.0",
        "requests",
        _TORCH,
    ),
    "optimum": (
        "optimum-onnx==0.1.0",
        "optimum==2.1.0",
        "onnxruntime==1.31.1",
        "transformers==4.57.6",
        "sentence-transformers==5.2.0",
        "datasets==5.0.1",
        _TORCH,
    ),
    "optimum-intel": (
        "optimum-intel[openvino]==2.2.0",
        "openvino==2026.4.1",
        "nncf==3.4.0",
        "transformers==5.5.4",
        "sentence-transformers==6.2.0",
        "datasets==5.0.1",
        "huggingface-hub<2",
        _TORCH,
    ),
}
"""The packages of each environment, as `pip install` takes them. All have the runtimes' versions of this project."""
_MADE = "made-with.txt"
_SHOWN = 300


class AbsentError(Exception):
    """An environment cannot be made; the text is the reason."""


def python(name: str, folder: Path = FOLDER) -> Path:
    """Return the interpreter of an environment; make it if it is not there with these packages. Raises AbsentError.

    pip takes its own settings, such as an index that has PyTorch's build for CPUs.
    """
    place, pins = folder.resolve() / name, "\n".join(PINS[name]) + "\n"
    interpreter, made = place / "bin" / "python", place / _MADE
    if made.is_file() and made.read_text() == pins:
        return interpreter
    _run([sys.executable, "-m", "venv", str(place)])
    _run([str(interpreter), "-m", "pip", "install", "--quiet", *PINS[name]])
    # Optimum Intel brings a build for GPUs, which does not load beside PyTorch's build for CPUs. Texts need none.
    _run([str(interpreter), "-m", "pip", "uninstall", "--quiet", "--yes", "torchvision"])
    made.write_text(pins)
    return interpreter


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        words = " ".join(errors or done.stderr.splitlines()[-1:])
        raise AbsentError(f"not installed: {' '.join(command[2:])[:_SHOWN]}: {words[:_SHOWN]}")
