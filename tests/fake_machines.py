"""A machine that says it has a T4 with TensorRT 10: a fake driver, a fake runtime, a fake TensorRT; named so.

What runs on it proves what is built where, in which order and under which key. Its numbers mean nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SAYS = "Tesla T4, 7.5, 15360, 550.54.15"


def t4(folder: Path) -> dict[str, str]:
    """Return the environment variables of a program on such a machine; skips where no C compiler is."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("the fake CUDA driver is compiled, and there is no C compiler (cc)")
    folder.mkdir(parents=True)
    source = _HERE / "fake_t4" / "libcuda.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{_SAYS}'\n")
    program.chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(folder),
        "PYTHONPATH": os.pathsep.join(map(str, (_HERE / "fake_t4", _HERE / "fake_tensorrt", _HERE))),
    }
