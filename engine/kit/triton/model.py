"""The model itself in a repository: its configuration, as its runtime says how it is served."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from engine.kit.onnx import onnx_files
from engine.kit.triton import config as configs
from engine.kit.triton import fields, gpu
from engine.kit.triton.config import Config, Signature
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import Part
from engine.runtimes.backends import Backend
from engine.runtimes.served import Served


def served(serving: Serving, directory: Path, scratch: Path) -> Served:
    """Return how the built model in a folder is served, by the runtime of the package."""
    execution = serving.execution
    told = execution.by.served(directory, execution, scratch)
    if told.inputs or not (directory / onnx_files.MODEL).is_file():
        return told
    graph = onnx_files.load_graph(directory)
    return replace(told, inputs=onnx_files.inputs(graph), outputs=onnx_files.outputs(graph))


def config(serving: Serving, model: Served, *, part: Literal["model"] | Part = "model") -> tuple[Config, Signature]:
    """Return the configuration of a model, and what it takes and gives.

    `part` is what the recipe calls it, where it is one of two graphs.
    """
    signature = Signature(model.inputs, model.outputs)
    made = configs.model_config(
        serving.model_name,
        signature,
        platform=(model.backend or Backend.PYTHON).platform,
        batch=configs.max_batch(signature, serving.max_batch_size, serving.largest),
        level=model.level,
        gpu=model.on_gpu,
    )
    if model.cuda_graphs is not None:
        gpu.cuda_graphs(made, model.cuda_graphs)
    if model.accelerator is not None:
        gpu.accelerated(made, *model.accelerator(made.name))
    _check_batch(made, signature, serving)
    fields.overridden(made, serving, part, profiles=model.profiles)
    if model.on_gpu:
        gpu.finish(made, profiles=model.profiles or 1)
    return made, signature


def _check_batch(config: Config, signature: Signature, serving: Serving) -> None:
    """Raise StepError where Triton would put more requests together than any profile takes."""
    axis = signature.batch_axis
    gpu.check_batch(config, serving.largest.get(axis) if axis is not None else None)
