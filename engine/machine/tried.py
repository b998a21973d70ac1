"""Tried: the newest version of each library that was tested, and the installed libraries that are newer."""

from __future__ import annotations

from collections.abc import Iterable

from engine.machine import tools
from engine.runtimes import versions

NEWEST = {
    "huggingface-hub": "2.4.0",
    "nncf": "3.4.0",
    "numpy": "2.4.6",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "onnxruntime": "1.32.0",
    "onnxscript": "0.7.2",
    "openvino": "2026.4.1",
    "polygraphy": "0.53.6",
    "ray": "2.60.0",
    "safetensors": "0.8.0",
    "sentencepiece": "0.2.2",
    "tensorrt_rtx": "1.7.1.116",
    "timm": "1.0.31",
    "tokenizers": "0.23.3",
    "torch": "2.13.0",
    "torchvision": "0.28.0",
    "transformers": "5.24.0",
    "tritonclient": "2.73.0",
}
"""Library -> the newest version with which the fast tests passed.

`.ci/nightly highest` tries the newest versions that the extras allow, and fails for a version that is newer than here.
"""


def newer(libraries: Iterable[str] = NEWEST) -> list[str]:
    """Return a sentence for each of the libraries that is installed in a newer version than was ever tried."""
    return [
        f"{name} {version} is newer than {NEWEST[name]}, the last version that was tried"
        for name in sorted(NEWEST.keys() & libraries)
        if versions.is_later(version := tools.version_of(name).partition("+")[0], than=NEWEST[name])
    ]
