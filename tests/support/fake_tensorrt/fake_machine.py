"""A machine with the GPU of `gpu.json`: importing this lets the process believe that CUDA shows it.

A test that drives the whole program puts `import fake_machine` into a .pth file of an environment of its own, so that
workers believe it, too; it needs a fake `nvidia-smi` besides.
"""

import functools
import json
from pathlib import Path

from engine.machine import cuda

GPU = json.loads(Path(__file__).with_name("gpu.json").read_text())
_device = cuda.CudaDevice(**GPU)
cuda.devices = functools.cache(lambda: (_device,))
cuda.runtime_version = functools.cache(lambda: "12.9")
