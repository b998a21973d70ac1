"""The ONNX file: whether its outputs suit the task, and whether ONNX Runtime can load it on this machine."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from engine import tasks
from engine.builder.preflight.model import CheckedVariant
from engine.kit.checkpoints import published
from engine.kit.inputs import index_ranges, token_inputs
from engine.kit.onnx import onnx_files, onnx_source
from engine.machine import imports
from engine.tasks import Classes, Modality, Unfit, answer

_QUIET = "ORT_DISABLE_TELEMETRY"
"""The variable that keeps ONNX Runtime from writing a database into the home folder, and from using the network."""


def look(subject: CheckedVariant) -> None:
    """Raise RecipeError where a package cannot answer with the .onnx file, or ONNX Runtime cannot load it.

    ONNX Runtime runs the original of every ONNX model.
    """
    path = subject.onnx_file
    if path is None or subject.facts is None:
        return
    _look_at_outputs(subject, path)
    if (tokenizer := subject.tokenizer) is not None:
        with subject.at("model", "tokenizer"):
            ranges = index_ranges.of(token_inputs.standardized(onnx_source.read(path)))
            published.refuse_more_tokens(tokenizer, ranges.get("input_ids"))
    if imports.location("onnxruntime") is None:
        return
    _import_quietly()
    from engine.runtimes.onnxruntime import loadable

    with subject.at("model", "source"):
        loadable.refuse(onnx_source.read(path), path, size=subject.facts.bytes)


def _look_at_outputs(subject: CheckedVariant, path: Path) -> None:
    """Raise RecipeError where the outputs of a file are not those of the recipe's task."""
    recipe = subject.recipe
    task, triton = tasks.known(recipe.model.task or ""), recipe.package.triton
    if task is None or not (task.classes or task.context) or not (triton.postprocess and triton.tokenizer):
        return
    if task.modality is Modality.TEXT and recipe.model.tokenizer is None:
        return
    from engine.kit.triton.answers import by_task, scores
    from engine.kit.triton.config import Signature

    model, axes = onnx_source.read(path), 3 if task.classes is Classes.TOKENS else 2
    signature = Signature({}, onnx_files.outputs(model))
    with subject.at("model", "task"):
        try:
            for name in task.outputs:
                output, _ = answer.output(signature, name, axes=axes, alone=not task.context)
                if task.classes is None:
                    scores.refuse_activated(model, output.name, axes=axes)
                else:
                    answer.extent(output)
                    scores.behind(model, output.name, axes=axes)
        except Unfit as reason:
            raise by_task.refusal(task.name, reason) from None


def _import_quietly() -> None:
    """Import ONNX Runtime so that it writes no file: `recipe check` writes nothing."""
    before = os.environ.get(_QUIET)
    os.environ[_QUIET] = "1"
    try:
        importlib.import_module("onnxruntime")
    finally:
        if before is None:
            del os.environ[_QUIET]
        else:
            os.environ[_QUIET] = before
