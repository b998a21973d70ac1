"""Configuration of a model that Triton runs on a GPU: profiles, CUDA graphs and accelerators."""

# Sources: Triton's documentation, "Model Configuration" and "Optimization"; README of the repository
# triton-inference-server/onnxruntime_backend, "ONNX Runtime with TensorRT optimization". No Triton server has served
# models with these configurations yet.

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.errors import StepError
from engine.kit.triton.config import Config
from engine.runtimes.served import Graph


def accelerated(config: Config, name: str, parameters: Mapping[str, str]) -> None:
    """Let Triton's ONNX Runtime backend run the model on the accelerator `name` with `parameters`."""
    accelerator = config.optimization.execution_accelerators.gpu_execution_accelerator.add()
    accelerator.name = name
    for each, value in parameters.items():
        accelerator.parameters[each] = value


def cuda_graphs(config: Config, graphs: Sequence[Graph]) -> None:
    """Let Triton's TensorRT backend capture a CUDA graph for the usual shapes of each profile.

    A request whose shapes are not those of a graph runs without a CUDA graph. Triton refuses a graph with more rows
    than max_batch_size, so such a graph gets max_batch_size rows; a profile whose min batch is more gets no graph.
    """
    # Source: triton-inference-server/tensorrt_backend, src/instance_state.cc, ValidateGraphSpec, SetCudaGraphShape.
    config.optimization.cuda.graphs = True
    most = config.max_batch_size
    specs = config.optimization.cuda.graph_spec
    for graph in graphs:
        if most and next(iter(graph.least.values()))[0] > most:
            continue
        spec = type(config.optimization.cuda).GraphSpec()
        spec.batch_size = min(next(iter(graph.usual.values()))[0], most) if most else 0
        for name, shape in graph.usual.items():
            spec.input[name].dim.extend(shape[1:] if most else shape)
        if spec not in specs:
            specs.append(spec)


def finish(config: Config, *, profiles: int) -> None:
    """Put every instance group on GPUs and let the group use all profiles of the TensorRT engine.

    In Triton, an instance group that lists no profiles uses only the first profile of a TensorRT engine. An instance
    group that the recipe configures is put on GPUs, too, and keeps the profiles that it lists. Triton's rules have
    refused a group on a CPU, because the model was validated and measured on a GPU.
    """
    for group in config.instance_group:
        if group.kind == group.KIND_AUTO:
            group.kind = group.KIND_GPU
        if profiles > 1 and not group.profile:
            group.profile.extend(str(number) for number in range(profiles))


def check_batch(config: Config, greatest: int | None) -> None:
    """Raise StepError where max_batch_size is greater than the greatest batch of any profile."""
    if greatest is not None and config.max_batch_size > greatest:
        raise StepError(
            f"max_batch_size: {config.max_batch_size} is more than the profiles take: {greatest}",
            hint="widen a profile's batch, or lower package.triton.max_batch_size",
        )
