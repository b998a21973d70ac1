"""A machine with the GPU of `gpu.json`: importing this lets the process believe that CUDA shows it.

A test that drives the whole program puts `import fake_machine` into a .pth file of an environment of its own, so that
workers believe it, too; it needs a fake `nvidia-smi` besides. The module that asks CUDA is changed when a process
imports it: in a job that does not need it, a loaded module would be code outside of the job's key.
"""

import functools
import json
import sys
from importlib.machinery import PathFinder
from pathlib import Path

GPU = json.loads(Path(__file__).with_name("gpu.json").read_text())


def believe(cuda):
    """Let the module that asks CUDA answer with the fake GPU."""
    device = cuda.CudaDevice(**GPU)
    cuda.devices = functools.cache(lambda: (device,))
    cuda.runtime_version = functools.cache(lambda: "12.9")


class _Finder:
    """Changes a module when a process imports it."""

    def __init__(self, name, change):
        self.name, self.change = name, change

    def find_spec(self, name, path=None, _target=None):
        spec = PathFinder.find_spec(name, path) if name == self.name else None
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), self.change(module))
        return spec


def at_import(name, change):
    """Change a module now, or when this process imports it."""
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, _Finder(name, change))


at_import("engine.machine.cuda", believe)
