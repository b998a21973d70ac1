"""Model: the built model in a Triton repository, configured by its runtime; a router where it has several shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from engine.errors import StepError
from engine.kit.inputs import token_rows
from engine.kit.onnx import onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import fields, loading, parts, served, warmups
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import PartName
from engine.runtimes.backends import Backend
from engine.runtimes.served import Graph, Router, Served


def served_model(serving: Serving, directory: Path, scratch: Path) -> Served:
    """Return how the runtime serves the package's built model in `directory`: files, backend, inputs and outputs.

    Where the runtime does not know the inputs and outputs of the model, both are read from the ONNX graph.
    """
    execution = serving.execution
    model = execution.by.served(directory, execution, scratch)
    if model.inputs or not (directory / onnx_files.MODEL).is_file():
        return model
    graph = onnx_files.load_graph(directory)
    return model._replace(inputs=onnx_files.inputs(graph), outputs=onnx_files.outputs(graph))


def config(serving: Serving, model: Served, *, part: Literal["model"] | PartName = "model") -> tuple[Config, Signature]:
    """Return the configuration and the signature (inputs and outputs) of a model.

    `part` is "encoder" or "decoder" where the built model consists of an encoder and a decoder, otherwise "model".
    Raises StepError for a model or a field of the recipe that Triton cannot serve.
    """
    takes_texts = serving.tokenizer and token_rows.are_tokens(model.inputs)  # texts have no place for other tensors
    signature = Signature(model.inputs, model.outputs, {} if takes_texts else model.optional)
    message = configs.model_config(
        serving.model_name,
        signature,
        backend=model.backend or Backend.PYTHON,
        batch=configs.max_batch(signature, serving.max_batch_size, serving.largest) if model.joined else 0,
        level=model.level,
        gpu=model.on_gpu,
    )
    for tensor in message.input:  # Triton loads no engine whose shape tensors are not marked (ValidateIO)
        tensor.is_shape_tensor = tensor.name in model.shape_tensors
    for name, value in sorted(model.parameters.items()):
        message.parameters[name].string_value = value
    if model.cuda_graphs is not None:
        cuda_graphs(message, model.cuda_graphs)
    if model.accelerator is not None:
        accelerated(message, *model.accelerator(message.name))
    _check_batch(message, signature, serving)
    fields.overridden(message, serving, part, profiles=model.profiles)
    parameter = serving.execution.by.threads_in_triton
    is_free = parameter is not None and parameter not in message.parameters and not model.on_gpu
    if serving.threads is not None and is_free:
        message.parameters[parameter].string_value = str(serving.threads)
    if (model.profiles or 1) == 1 and not fields.says(serving, part, "model_warmup"):
        warmups.add_usual(message, signature, largest=serving.largest, on_gpu=model.on_gpu)
    if model.on_gpu:
        use_gpus(message, profiles=model.profiles or 1)
    if model.profiles is not None:
        problems = loading.engine_problems(
            message, signature, profiles=model.profiles, shape_tensors=model.shape_tensors
        )
        loading.refuse_problems([f"{message.name}: {problem}" for problem in problems])
    return message, signature


def _check_batch(config: Config, signature: Signature, serving: Serving) -> None:
    """Raise StepError where Triton would join more requests than any profile of the recipe takes."""
    axis = signature.batch_axis
    greatest = serving.largest.get(axis) if axis is not None else None
    if greatest is not None and config.max_batch_size > greatest:
        raise StepError(
            f"max_batch_size: {config.max_batch_size} is more than the profiles take: {greatest}",
            hint="widen a profile's batch, or lower package.triton.max_batch_size",
        )


# Sources: Triton's documentation, "Model Configuration" and "Optimization"; README of the repository
# triton-inference-server/onnxruntime_backend, "ONNX Runtime with TensorRT optimization". No Triton server has served
# models with these configurations yet.


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


def use_gpus(config: Config, *, profiles: int) -> None:
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


def built(serving: Serving, model: Served, directory: Path) -> tuple[list[Part], dict[str, Files], Signature]:
    """Return the models of a built model, the files of each by its name, and the inputs and outputs.

    The last model is the one that is called. `directory` is the folder of the built model. Fields of the recipe for the
    model are fields of each model behind a router. Raises StepError for a field that Triton cannot serve.
    """
    if model.router is None:
        alone, signature = config(serving, model)
        return [Part(alone)], {alone.name: _files(model, directory)}, signature
    if fields.says(serving, "model", "model_warmup"):
        raise StepError(
            "package.triton.model_warmup has one shape, and the model is compiled for several",
            [f"models: {', '.join(model.router.models)}"],
            "leave model_warmup out, or keep one profile",
        )
    behind: list[Part] = []
    files = {}
    for end, each in model.router.models.items():
        named = serving.model_copy(update={"model_name": f"{serving.model_name}_{end}"})
        behind.append(Part(config(named, each)[0]))
        files[named.model_name] = _files(each, directory)
    signature = Signature(model.inputs, model.outputs)
    return [*behind, _router(serving.model_name, signature, model.router, behind)], files, signature


def _router(name: str, signature: Signature, router: Router, behind: list[Part]) -> Part:
    """Return the python model that clients call; it has as many instances as the models behind it together."""
    message = configs.model_config(name, signature, backend=Backend.PYTHON, batch=0)
    message.instance_group[0].count = sum(group.count for part in behind for group in part.config.instance_group)
    settings = {"routing": router.facts, "models": [part.config.name for part in behind]}
    return Part(message, parts.code(served.ROUTE, settings, {"routing.py": router.code}))


def _files(model: Served, directory: Path) -> Files:
    return Files(model.folder or directory, model.files)
