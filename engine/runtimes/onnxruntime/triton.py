"""How Triton's ONNX Runtime backend serves a built model."""

# Sources: README of triton-inference-server/onnxruntime_backend, "Model Config Options" and "ONNX Runtime with TensorRT
# optimization". No Triton server has run the TensorRT accelerator yet.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.errors import StepError
from engine.kit.onnx import onnx_files
from engine.kit.onnx.onnx_files import Input
from engine.runtimes.backends import Accelerator, Backend
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import session_options
from engine.runtimes.onnxruntime import tensorrt_provider as ort_tensorrt
from engine.runtimes.onnxruntime.spec import Provider
from engine.runtimes.served import InPython, Served

data = ("in_python.py", "in_python_cuda.py")  # packages carry one of these files unchanged
_TRITONS_NAMES = {"trt_max_workspace_size": "max_workspace_size_bytes"}
"""Options of ONNX Runtime that have another name in Triton's backend."""


def served(directory: Path, execution: Execution, scratch: Path) -> Served:
    """Return the properties of an ONNX model that Triton's ONNX Runtime backend needs to serve the model.

    Raises StepError where Triton cannot run the model as it was validated.
    """
    graph = onnx_files.load_graph(directory)
    inputs = onnx_files.inputs(graph)
    by_tensorrt = execution.options["provider"] == Provider.TENSORRT
    wide_sums = execution.on_gpu and ort_providers.needs_wide_sums(graph)
    by_cuda = ort_providers.cuda_numbers(tf32=execution.options.get("tf32"), wide_sums=wide_sums)
    level = _level(directory, scratch, on_gpu=execution.on_gpu)
    return Served(
        Backend.ONNXRUNTIME,
        inputs,
        onnx_files.outputs(graph),
        onnx_files.files(graph),
        optional=onnx_files.optional_inputs(graph),
        on_gpu=execution.on_gpu,
        level=level,
        in_python=None if by_tensorrt else _in_python(level, by_cuda, on_gpu=execution.on_gpu),
        accelerator=(
            (lambda _: _accelerator(inputs, execution))
            if by_tensorrt
            else (lambda _: (Accelerator.CUDA, by_cuda))
            if by_cuda
            else None
        ),
    )


def _in_python(level: str, options: Mapping[str, str], *, on_gpu: bool) -> InPython:
    """Return how a Python model runs an ONNX model, at the level and with the options of Triton's own backend.

    On a GPU it needs the CUDA libraries of pip, too: those of Triton's image may be of another major version.
    """
    for_cpus, for_gpus = ((Path(__file__).parent / each).read_bytes() for each in data)
    settings = {"file": onnx_files.MODEL, "level": session_options.LEVELS[level]}
    if not on_gpu:
        return InPython(for_cpus, settings, ("onnxruntime",))
    more = {"provider": ort_providers.CUDA, "options": options, "graphs": True}
    return InPython(for_gpus, {**settings, **more}, ("onnxruntime-gpu[cuda,cudnn]",))


def _accelerator(inputs: Mapping[str, Input], execution: Execution) -> tuple[str, Mapping[str, str]]:
    """Return the TensorRT accelerator with its parameters.

    The server builds its engines at each start. ONNX Runtime loads stored engines without a comparison with a digest,
    and TensorRT runs what an engine holds, so that a folder of engines in which others may write runs their code. A
    package cannot know a folder in which only the user of the server may write. The accelerator's parameter
    `precision_mode` stays unset: the images of Triton whose accelerator may serve a lower precision build a strongly
    typed network without it, and a weakly typed one with any value (providers.py).
    """
    options = ort_tensorrt.options(inputs, execution)
    return Accelerator.TENSORRT, {_TRITONS_NAMES.get(each, each): value for each, value in sorted(options.items())}


def _level(model: Path, scratch: Path, *, on_gpu: bool) -> str:
    """Return the optimization level that Triton must use.

    Triton cannot disable single optimizers of ONNX Runtime. An optimizer that `session.json` disables must be one that
    would not change the model; for example, the fusions of higher levels never run at the level `basic`. Raises
    StepError where an optimizer that `session.json` disables would change the model.
    """
    level = ort.level_of(model, on_gpu=on_gpu)
    disabled = session_options.read(model).disabled
    if not disabled:
        return level
    with TemporaryDirectory(dir=scratch) as folder:
        models = []
        for name, without in (("without", disabled), ("with", ())):
            ort.optimize(model, Path(folder) / name, level=level, disabled=without)
            models.append([path.read_bytes() for path in sorted((Path(folder) / name).iterdir())])
    if models[0] != models[1]:
        raise StepError(
            "Triton cannot serve this model as it was validated: it cannot switch single optimizers off",
            [f"switched off: {', '.join(disabled)}, at the level {level}"],
        )
    return level
