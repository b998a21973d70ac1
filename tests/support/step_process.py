"""Steps run in a process of their own, where some packages are missing and strings hash otherwise."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from engine.step import Step

ROOT = Path(__file__).parent.parent.parent
_PROGRAM = """
import sys
from importlib import import_module
from pathlib import Path

module, name, out, *inputs = sys.argv[1:]
sys.modules |= dict.fromkeys(("torch", "transformers"))
step = getattr(import_module(module), name)()
step.run(Path(out), **{key: Path(path) for key, path in (each.split("=", 1) for each in inputs)})
"""


def digests(step: type[Step], folder: Path, **inputs: Path) -> set[str]:
    """Return the digests of `model.onnx` of three runs of a step with its default options.

    Two runs are here, and one in a process with another hash seed, where torch and transformers cannot be imported.
    Each run writes to another directory below `folder`. `inputs` are those of the step.
    """
    outs = [folder / "first/out", folder / "second/out", folder / "other"]
    for out in outs[:2]:
        out.parent.mkdir()
        step().run(out, **inputs)
    words = [sys.executable, "-c", _PROGRAM, step.__module__, step.__name__, str(outs[2])]
    words += [f"{name}={path}" for name, path in inputs.items()]
    subprocess.run(words, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "5"}, check=True, capture_output=True)
    return {hashlib.sha256((out / "model.onnx").read_bytes()).hexdigest() for out in outs}
