"""Runners of ONNX Runtime sessions: on a CPU, and on a GPU with inputs and outputs bound to the GPU's memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.gpus import AMPERE
from engine.kit.onnx import onnx_files
from engine.machine import cuda
from engine.runtimes import devices
from engine.runtimes.execution import Execution
from engine.runtimes.onnxruntime import generation, multiplications, spec
from engine.runtimes.onnxruntime import providers as ort_providers
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.onnxruntime import tensorrt_provider as ort_tensorrt
from engine.runtimes.onnxruntime.providers import ON_CPU, SessionProvider
from engine.runtimes.runner import BoundCall, CapturedGraph, RivalModel, Runner
from engine.text import reasons

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime

    Tensors = Mapping[str, np.ndarray]

__all__ = ["bound", "provider_of", "rival", "runner"]

_GRAPH = "gpu_graph_id"
"""The run option with the number of the CUDA graph that a run captures or replays; -1 for a run without a graph."""


def runner(
    directory: Path, execution: Execution, *, name: str, threads: int = 0, new_tokens: int | None = None
) -> Runner:
    """Return the runner of `directory/model.onnx`, or of the graphs of a model that generates text.

    Raises StepError where this machine lacks the GPU, or where ONNX Runtime would run the model on another provider.
    """
    if new_tokens is not None:
        return generation.runner(directory, name=name, threads=threads, new_tokens=new_tokens)
    provider = provider_of(directory, execution)
    session = ort.session(directory, threads=threads, provider=provider)

    if not provider.on_gpu:
        return Runner(
            name,
            lambda inputs: ort.run(session, inputs),
            lambda inputs: _plain(session, inputs),
            work=lambda inputs: multiplications.multiplications(directory, inputs, provider=provider),
        )
    graphs = count(1)  # each prepared call has a CUDA graph of its own: a graph fixes shapes and addresses
    memory = ("cuda", int(provider.options["device_id"]))
    captures = any(provider.options.get(key) == "1" for key in ("enable_cuda_graph", "trt_cuda_graph_enable"))

    def bind(inputs: Tensors) -> BoundCall:
        return bound(session, inputs, memory=memory, graph=next(graphs) if captures else None)

    return Runner(
        name,
        lambda inputs: ort.run(session, inputs, _options(-1) if captures else None),
        lambda inputs: bind(inputs).run,
        capture=(lambda inputs: _captured(bind, inputs)) if captures else None,
    )


def rival(original: RivalModel, *, name: str, precision: str, execution: Execution, threads: int) -> Runner:  # noqa: ARG001 - an exported model has its own precision
    """Return the runner of an exported model with ONNX Runtime's defaults, as a user would open the model.

    On a GPU the CUDA provider runs the model. Raises StepError where this machine lacks the GPU, or where ONNX Runtime
    would run the model on another provider.
    """
    plain = spec.OnnxRuntime().as_rival(execution)
    return runner(original.exported, plain, name=name, threads=threads, new_tokens=original.new_tokens)


def provider_of(directory: Path, execution: Execution) -> SessionProvider:
    """Return the execution provider of a model. Raises StepError where this machine lacks the GPU of `execution`."""
    if execution.hardware is None:
        return ON_CPU
    gpu, tf32 = devices.chosen(execution.hardware), execution.options.get("tf32")
    if gpu.sm >= AMPERE:
        by = "ONNX Runtime's default" if tf32 is None else "the recipe's `tf32`"
        print(f"products of fp32 {'stay in fp32' if tf32 is False else 'may be computed in TF32'} ({by})")
    graph = onnx_files.load_graph(directory)
    if execution.options["provider"] == spec.Provider.CUDA:
        captures, wide_sums = execution.options.get("cuda_graph", False), ort_providers.needs_wide_sums(graph)
        return ort_providers.cuda(gpu, graph=captures, tf32=tf32, wide_sums=wide_sums)
    import onnxruntime

    precision = ort_tensorrt.precisions(graph, onnxruntime.__version__)
    settings = {**ort_tensorrt.options(onnx_files.inputs(graph), execution), **precision}
    return ort_providers.tensorrt(gpu, settings, tf32=tf32)


def _plain(session: onnxruntime.InferenceSession, inputs: Tensors) -> Callable[[], object]:
    ort.run(session, inputs)  # raises a clear error for wrong inputs; the `session.run` below would not
    names = [value.name for value in session.get_outputs()]
    feed = {value.name: inputs[value.name] for value in session.get_inputs()}
    return lambda: session.run(names, feed)


def bound(
    session: onnxruntime.InferenceSession, inputs: Tensors, *, memory: tuple[str, int], graph: int | None
) -> BoundCall:
    """Return a call of the model, bound to the device's memory.

    `memory` is the kind and the number of the device, for example ("cuda", 0). `graph` is the number of the CUDA graph
    that captures the call; None for no graph.
    """
    import onnxruntime

    plain_run = None if graph is None else _options(-1)
    outputs = ort.run(session, inputs, plain_run)  # to learn the shapes of the outputs
    binding = session.io_binding()
    given, computed = {}, {}
    for name, array in ort.feed(session, inputs).items():
        given[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array, *memory)
        binding.bind_ortvalue_input(name, given[name])
    for name, array in outputs.items():
        shape = list(array.shape)
        computed[name] = onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, array.dtype.type, *memory)
        binding.bind_ortvalue_output(name, computed[name])
    options = None if graph is None else _options(graph)

    def call() -> None:
        session.run_with_iobinding(binding, options)
        binding.synchronize_outputs()

    def answers(others: Tensors) -> dict[str, np.ndarray]:
        with _explained("ONNX Runtime cannot run the model on other inputs in the same memory"):
            for name, array in ort.feed(session, others).items():
                given[name].update_inplace(array)
            call()
            return {name: value.numpy() for name, value in computed.items()}

    return BoundCall(call, answers)


def _captured(bind: Callable[[Tensors], BoundCall], inputs: Tensors) -> BoundCall:
    """Bind a call and run it once: ONNX Runtime then runs the model twice, captures it, and replays the graph.

    Source: `InferenceSession::Run` and `CUDAExecutionProvider::OnRunEnd` of ONNX Runtime, which repeat a run until its
    graph is captured. Raises StepError where a part of the model cannot be captured.
    """
    before = cuda.free_memory()
    with _explained("ONNX Runtime cannot capture the model into a CUDA graph"):
        call = bind(inputs)
        began = time.perf_counter()
        call.run()
        took = time.perf_counter() - began
    after = cuda.free_memory()
    taken = None if before is None or after is None else max(0, before - after)
    return call._replace(graph=CapturedGraph(capture_s=round(took, 3), memory_bytes=taken))


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Raise StepError in place of an error of ONNX Runtime, which has a class for each status code."""
    try:
        yield
    except StepError:
        raise
    except Exception as error:
        raise StepError(what, reasons.facts(error)) from error


def _options(graph: int) -> Any:
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry(_GRAPH, str(graph))
    return options
