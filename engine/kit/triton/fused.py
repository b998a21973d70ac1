"""Fused: tokenizer, model and answers as one Python model, in place of models of their own behind an ensemble."""

# A text then crosses the border between Triton and Python once, not once for each model.

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import StepError
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.triton import fields, parts, served
from engine.kit.triton.config import Config
from engine.kit.triton.parts import Files, Part
from engine.kit.triton.serving import Serving
from engine.recipe.model_config import MODEL_CONFIG, OF_A_PYTHON_MODEL
from engine.runtimes import fixed_shapes
from engine.runtimes.served import Served
from engine.runtimes.triton_tensors import TEXT

if TYPE_CHECKING:
    from engine.kit.onnx.onnx_files import Input
    from engine.runtimes.fixed_shapes import AxesOfOutputs

_TAKEN_OVER = OF_A_PYTHON_MODEL - {"name", "max_batch_size", "input", "output", "parameters"}
_WARM_UP = "ok " * 14
"""About 16 tokens, as the warm-up of a model behind an ensemble has."""
_HINT = "use layout: ensemble"


def part(serving: Serving, listed: Sequence[Part], model: Served, files: Files, checkpoint: Path) -> tuple[Part, Files]:
    """Return the Python model that does the work of an ensemble and its models, and the files of the built model.

    `listed` are the models of the package with the layout `ensemble`: the built model first, the entry last. `files`
    are the files of the built model. Raises StepError where a Python model cannot do the work.
    """
    built, entry = listed[0], listed[-1]
    reason = why_not(listed, model)
    if reason is not None or model.in_python is None:
        raise StepError(f"package.triton.layout: fused is not possible: {reason}", hint=_HINT)
    refused = [name for name in MODEL_CONFIG if name not in OF_A_PYTHON_MODEL and fields.says(serving, "model", name)]
    if refused:
        raise StepError(f"a package of the layout fused has no {' and no '.join(refused)}", hint=_HINT)
    by_name = {each.config.name: each for each in listed}
    steps = [
        {
            "folder": None if step.model_name == built.config.name else step.model_name,
            "takes": dict(sorted(step.input_map.items())),  # protobuf has no order
            "gives": dict(sorted(step.output_map.items())),
        }
        for step in entry.config.ensemble_scheduling.step
    ]
    own = {
        f"{step['folder']}/{name}": content
        for step in steps
        if step["folder"]
        for name, content in by_name[step["folder"]].files.items()
        if name not in ("model.py", served.UNREAD)
    }
    session = {**model.in_python.settings, "threads": _threads(serving, built.config)}
    if model.on_gpu:
        # session.py (runtimes/onnxruntime/in_python_cuda.py) replays a CUDA graph for each profile of one size, and
        # pads requests to the shape of the graph. model.py knows the GPU of its instance.
        session["routing"] = _routing(serving, model, checkpoint)
        own |= {
            "model.py": served.code(served.ON_GPU),
            "instance.py": served.code(served.MODEL),
            "routing.py": fixed_shapes.code(),
        }
    takes = parts.tensors(entry.config.input, entry.config)
    python_model = parts.python(
        entry.config.name,
        entry.config,
        takes=takes,
        gives=parts.tensors(entry.config.output, entry.config),
        work=served.FUSED,
        settings={
            "steps": steps,
            "session": session,
            "most": entry.config.max_batch_size,
            "max_text_bytes": _max_text_bytes(by_name[step["folder"]].files for step in steps if step["folder"]),
            "warm_up": [_WARM_UP] * max(1, *takes[0].dims),
        },
        files={**own, "session.py": model.in_python.code},
        needs=("tokenizers", *model.in_python.needs),
    )
    _take_over(python_model.config, built.config, entry.config)
    for name in set(serving.fields.get("parameters") or ()) - {serving.execution.by.threads_in_triton}:
        if name in built.config.parameters:  # such as EXECUTION_ENV_PATH of the Python backend
            python_model.config.parameters[name].CopyFrom(built.config.parameters[name])
    return python_model, files


def why_not(listed: Sequence[Part], model: Served) -> str | None:
    """Return why the models of a package cannot be one Python model; None where they can."""
    entry = listed[-1].config
    if model.in_python is None or model.router is not None:
        return "no Python model runs the built model of this runtime and device"
    if [tensor.name for tensor in entry.input] != [TEXT] or entry.platform != "ensemble":
        return "it is for packages that take texts, and whose answer is one pass of the model"
    return None


def _max_text_bytes(files: Iterable[Mapping[str, bytes]]) -> int:
    """Return the most bytes of a text, as the settings of the tokenizer have it."""
    [most] = [each for part in files if (each := json.loads(part[parts.SETTINGS]).get("max_text_bytes")) is not None]
    return int(most)


def _threads(serving: Serving, model: Config) -> int:
    """Return the number of threads of an operator; 0 where neither the recipe nor its fields for Triton name one."""
    parameter = serving.execution.by.threads_in_triton
    value = model.parameters[parameter].string_value if parameter and parameter in model.parameters else ""
    return int(value or serving.threads or 0)


def _take_over(config: Config, model: Config, entry: Config) -> None:
    """Write into `config` what the recipe says about the model, and the parameters that clients read."""
    for name in _TAKEN_OVER:
        config.ClearField(name)
    kept: Any = type(config)()
    kept.CopyFrom(model)
    for descriptor, _ in model.ListFields():
        if descriptor.name not in _TAKEN_OVER:
            kept.ClearField(descriptor.name)
    config.MergeFrom(kept)
    for name, value in entry.parameters.items():
        config.parameters[name].CopyFrom(value)


def _routing(serving: Serving, model: Served, checkpoint: Path) -> Mapping[str, Any] | None:
    """Return the facts of `Routing` by which requests are padded to a profile; None where no profile has one size.

    A request goes to the smallest profile that holds it: on a GPU a padded request that replays a graph costs less than
    the launches of one that does not. A model whose rows may not be joined, or whose texts may not be padded, has no
    such package: see splitter.py. Raises StepError for profiles that do not suit the model's inputs.
    """
    facts = fixed_shapes.routing(
        model.inputs,
        serving.profiles,
        tokenizers.load(checkpoint),
        outputs=tuple(model.outputs),
        axes_of_outputs=lambda rows, tokens: _by_name(model.outputs, rows, tokens),
    )
    return None if facts is None else {**facts, "free": False}


def _by_name(outputs: Mapping[str, Input], rows: str | None, tokens: str | None) -> AxesOfOutputs | None:
    """Return for each axis of each output whether it is the axis of rows or of tokens, by the names in the graph.

    A first axis without a name is that of rows. The result is None where another axis of any size is not known.
    """
    known: dict[str, list[str | None]] = {}
    for name, output in outputs.items():
        shape = [rows if index == 0 and axis == f"{name}_0" else axis for index, axis in enumerate(output.shape)]
        if not output.ranked or any(isinstance(axis, str) and axis not in {rows, tokens} for axis in shape):
            return None
        known[name] = [axis if isinstance(axis, str) else None for axis in shape]
    return known
