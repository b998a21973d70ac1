"""A CUDA provider that computes on the CPU: models that this program runs with ONNX Runtime on a GPU run there.

It proves what becomes of the figures, and no figure.
"""

import fake_machine


def _compute_on_the_cpu(module):
    run = module.runner
    module.provider_of = lambda _directory, _execution: module.ON_CPU
    module.runner = lambda *model, **options: run(*model, **options)._replace(work=None)  # a GPU counts none


fake_machine.at_import("engine.runtimes.onnxruntime.runner", _compute_on_the_cpu)
