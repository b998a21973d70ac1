"""The GPU that the fake works on, as `gpu.json` says, also to those who ask CUDA; its memory is the host's."""

import importlib
import importlib.util
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent
VERSION = next(FOLDER.glob("tensorrt-*.dist-info")).name.removesuffix(".dist-info").partition("-")[2]


def gpu():
    return importlib.import_module("fake_machine").GPU


def pretend():
    """Let the program's own questions to CUDA be answered by this GPU."""
    importlib.import_module("fake_machine")
    spec = importlib.util.spec_from_file_location("fake_gpu", FOLDER.parent / "fake_gpu.py")
    fake_gpu = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fake_gpu)
    sys.modules["cuda.bindings.runtime"] = fake_gpu.Runtime()


def put(work):
    """Do some work on a stream: now, or when the graph that is being captured is launched."""
    sys.modules["cuda.bindings.runtime"].put(work)
