"""The built model in a Triton repository: its files and its configuration, which depend on the model's runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from engine.kit.inputs import token_rows
from engine.kit.onnx import onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import engine_loading, fields, gpu, loading, warmups
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import PartName
from engine.runtimes.backends import Backend
from engine.runtimes.served import Served


def served(serving: Serving, directory: Path, scratch: Path) -> Served:
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
        gpu.cuda_graphs(message, model.cuda_graphs)
    if model.accelerator is not None:
        gpu.accelerated(message, *model.accelerator(message.name))
    _check_batch(message, signature, serving)
    fields.overridden(message, serving, part, profiles=model.profiles)
    parameter = serving.execution.by.threads_in_triton
    is_free = parameter is not None and parameter not in message.parameters and not model.on_gpu
    if serving.threads is not None and is_free:
        message.parameters[parameter].string_value = str(serving.threads)
    if (model.profiles or 1) == 1 and not fields.says(serving, part, "model_warmup"):
        warmups.add_usual(message, signature, largest=serving.largest, on_gpu=model.on_gpu)
    if model.on_gpu:
        gpu.finish(message, profiles=model.profiles or 1)
    if model.profiles is not None:
        problems = engine_loading.problems(
            message, signature, profiles=model.profiles, shape_tensors=model.shape_tensors
        )
        loading.refuse_problems([f"{message.name}: {problem}" for problem in problems])
    return message, signature


def _check_batch(config: Config, signature: Signature, serving: Serving) -> None:
    """Raise StepError where Triton would join more requests than any profile of the recipe takes."""
    axis = signature.batch_axis
    gpu.check_batch(config, serving.largest.get(axis) if axis is not None else None)
