"""A fake of `cuda.bindings.runtime`: host memory behind every address; see fake_gpu."""

import fake_gpu

_RUNTIME = fake_gpu.Runtime(memory=15 << 30)


def __getattr__(name):
    return getattr(_RUNTIME, name)
