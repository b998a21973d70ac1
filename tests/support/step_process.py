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

module, name, missing, out, *inputs = sys.argv[1:]
sys.modules |= dict.fromkeys(missing.split(","))
step = getattr(import_module(module), name)()
print(step.run(Path(out), **{key: Path(path) for key, path in (each.split("=", 1) for each in inputs)}))
"""


def run(
    step: type[Step], out: Path, *, missing: tuple[str, ...] = ("torch", "transformers"), seed: int = 5, **inputs: Path
) -> str:
    """Run a step with its default options in a new process, and return what the step and its report print.

    `missing` are packages that cannot be imported there, `seed` is the hash seed, `inputs` are those of the step.
    """
    words = [sys.executable, "-c", _PROGRAM, step.__module__, step.__name__, ",".join(missing), str(out)]
    words += [f"{name}={path}" for name, path in inputs.items()]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    return subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def digests(step: type[Step], folder: Path, **inputs: Path) -> set[str]:
    """Return the digests of `model.onnx` of three runs: two here, and one in a process with another hash seed.

    Each run writes to another directory below `folder`.
    """
    outs = [folder / "first/out", folder / "second/out", folder / "other"]
    for out in outs[:2]:
        out.parent.mkdir()
        step().run(out, **inputs)
    run(step, outs[2], **inputs)
    return {hashlib.sha256((out / "model.onnx").read_bytes()).hexdigest() for out in outs}
