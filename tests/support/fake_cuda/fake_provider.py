"""A CUDA provider that computes on the CPU: models that this program runs with ONNX Runtime on a GPU run there.

It proves what becomes of the figures, and no figure. The module that runs models is changed when a process imports it,
as in `fake_machine`.
"""

import sys
from importlib.machinery import PathFinder

_RUNNING = "engine.runtimes.onnxruntime.runner"


class _Finder:
    @staticmethod
    def find_spec(name, path=None, _target=None):
        spec = PathFinder.find_spec(name, path) if name == _RUNNING else None
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), _compute_on_the_cpu(module))
        return spec


def _compute_on_the_cpu(module):
    run = module.runner
    module.provider_of = lambda _directory, _execution: module.ON_CPU
    module.runner = lambda *model, **options: run(*model, **options)._replace(work=None)  # a GPU counts none


sys.meta_path.insert(0, _Finder)
