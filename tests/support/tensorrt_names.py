"""The names in NVIDIA's Python bindings of TensorRT, version by version, read without TensorRT's libraries.

The bindings are one extension module, which PyPI has for every version. Its libraries are not on PyPI, so that they are
replaced by empty ones: the module is imported, and never called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

PACKAGE = "tensorrt-cu12-bindings"
VERSIONS = (
    *("10.0.1", "10.1.0", "10.2.0", "10.3.0", "10.4.0", "10.5.0", "10.6.0", "10.7.0", "10.8.0.43", "10.9.0.34"),
    *("10.10.0.31", "10.11.0.33", "10.12.0.36", "10.13.0.35", "10.14.1.48.post1", "10.15.1.29", "10.16.1.11"),
    *("11.0.0.114", "11.1.0.106", "11.2.1.2", "11.3.0.99", "11.4.0.106"),
)
_CALLED = ("getNvOnnxParserVersion", "getBuilderPluginRegistry", "getPluginRegistry", "initLibNvInferPlugins")
_LIBRARIES = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
_MAJORS = ("10", "11")
_READ = """
import importlib.machinery, importlib.util, json, os, sys
sys.setdlopenflags(os.RTLD_LAZY)  # what is not called need not be there
loader = importlib.machinery.ExtensionFileLoader("tensorrt", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tensorrt", loader))
loader.exec_module(module)
classes = {name: value for name, value in vars(module).items() if isinstance(value, type)}
names = {name: list(getattr(value, "__members__", ()) or dir(value)) for name, value in classes.items()}
print(json.dumps([f"{name}.{member}" for name, members in names.items() for member in members]))
"""


def names(version: str, folder: Path) -> frozenset[str]:
    """Return `Class.member` for every public class of one version; skip, saying why, where they cannot be read."""
    place = folder / version
    words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", str(place)]
    fetched = _run([sys.executable, *words, f"{PACKAGE}=={version}"], {})
    if fetched.returncode:
        pytest.skip(f"{PACKAGE} {version} cannot be fetched: {fetched.stderr.strip().splitlines()[-1:]}")
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    module = place / "tensorrt_bindings" / "tensorrt.so"
    read = _run([sys.executable, "-c", _READ, str(module)], {"LD_LIBRARY_PATH": str(_libraries(folder))})
    assert read.returncode == 0, f"{version}: {read.stderr}"
    return frozenset(json.loads(read.stdout))


def first(api: str, by_version: Mapping[str, frozenset[str]]) -> str | None:
    """Return the first of the versions, in order, that has a name of the API; None where none has it."""
    return next((version for version, known in by_version.items() if api in known), None)


def _libraries(folder: Path) -> Path:
    """Return a folder with libraries of TensorRT's names that hold nothing; skip where no compiler can make them."""
    place = folder / "empty"
    if place.exists():
        return place
    place.mkdir()
    code = place / "empty.c"
    code.write_text("".join(f"long {name}(void) {{ return 0; }}\n" for name in _CALLED), "utf-8")
    for library in _LIBRARIES:
        for major in _MAJORS:
            compiled = _run(["cc", "-shared", "-fPIC", "-o", str(place / f"lib{library}.so.{major}"), str(code)], {})
            if compiled.returncode:
                pytest.skip(f"no C compiler makes the empty libraries: {compiled.stderr.strip().splitlines()[-1:]}")
    return place


def _run(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **environment}
        )
    except FileNotFoundError as error:
        return subprocess.CompletedProcess(words, 127, "", str(error))
