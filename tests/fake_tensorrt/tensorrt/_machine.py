"""The GPU that the fake works on: what `gpu.json` beside it says, also to those who ask the CUDA driver."""

import json
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent.parent
VERSION = next(FOLDER.glob("tensorrt-*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]


@cache
def gpu():
    return json.loads((FOLDER / "gpu.json").read_text())


def pretend():
    """Let the program's own questions to the CUDA driver be answered by this GPU."""
    from engine import cuda

    device = cuda.Device(**gpu())
    cuda.devices = lambda: (device,)
    cuda.runtime_version = lambda: "12.9"
