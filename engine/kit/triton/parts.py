"""Parts: the models of a repository, each of which is a configuration with files, and the ensemble of the models."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.kit.triton import served
from engine.kit.triton.config import Config, Signature, join_requests, named
from engine.machine import tools
from engine.runtimes.backends import BY_POSITION, Backend
from engine.tasks import AnswerTensor

TASK = "recipe_task"
"""The parameter of a configuration that marks a model as one that clients call; the value is the model's task."""
MASK = "recipe_mask"
"""The parameter of a configuration that holds the mask token, for clients of a model that fills masks."""
ROWS = "recipe_rows"
"""The parameter of a configuration that says which rows run together, where not all rows may."""
_EMPTY = b"An ensemble has no files of its own, but Triton looks for the folder of its version.\n"
SETTINGS, REQUIREMENTS = "settings.json", "requirements.txt"


@dataclass(frozen=True)
class Files:
    """Files to copy into the folder of a model's version: the folder where the files are, and the files' names."""

    folder: Path
    names: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A model of the repository: its configuration and its files."""

    config: Config
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The name of each file in the folder of the model's version -> the content of the file."""
    beside: Mapping[str, bytes] = field(default_factory=dict)
    """Name -> content of each file that lies in the model's folder beside the folder of the version."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Name of a tensor in the model -> name of the tensor in the ensemble, for tensors whose two names differ."""


def python(
    name: str,
    model: Config,
    *,
    takes: Sequence[AnswerTensor],
    gives: Sequence[AnswerTensor],
    work: str,
    settings: Mapping[str, Any],
    files: Mapping[str, bytes] | None = None,
    needs: Sequence[str] = (),
    instances: int = 1,
) -> Part:
    """Return a model of the python backend, which has the max_batch_size of `model`.

    `work` is the file with the code of the python model: a file of `kit/triton/served`, or one of `files`. `takes` are
    the inputs of the python model, and `gives` are its outputs. `needs` names the Python packages, besides numpy, that
    the Python of the Triton server must have; requirements.txt pins each package to the installed version. `instances`
    is how many processes of the model the server starts, unless the recipe says otherwise.
    """
    config = named(name, model.max_batch_size)
    config.backend = "python"
    for tensors, described in ((takes, config.input), (gives, config.output)):
        for tensor in tensors:
            _describe(described.add(), tensor, model)
    group = config.instance_group.add()
    group.count, group.kind = instances, type(group).KIND_CPU
    if model.max_batch_size > 1:
        join_requests(config)
        for tensor in config.input:  # the code handles each request by itself, so their shapes may differ
            tensor.allow_ragged_batch = -1 in tensor.dims
    return Part(config, code(work, settings, files or {}), _requirements(needs))


def code(work: str, settings: Mapping[str, Any], own: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a python model: `model.py`, the file `work`, `settings.json` and the files `own`.

    A model with a limit of its texts also has `unread.py`.
    """
    settings_file = json.dumps({"work": work, **settings}, ensure_ascii=False, indent=1) + "\n"
    shipped = {"model.py": served.code(served.MODEL), SETTINGS: settings_file.encode("utf-8")}
    if "max_text_bytes" in settings:
        shipped[served.UNREAD] = served.code(served.UNREAD)
    return {**shipped, work: own[work] if work in own else served.code(work), **own}


def ensemble(
    name: str, parts: Sequence[Part], *, takes: Sequence[AnswerTensor], gives: Sequence[str], task: str
) -> Part:
    """Return the ensemble that clients call, with the inputs `takes` and the outputs `gives`.

    Where an input and an output of the last model have the same name, the ensemble calls the input `{name}_before`. If
    an input and an output of the last model had one name in the ensemble, the last model would wait forever for the
    input when a client does not request the output, because Triton drops an unrequested tensor everywhere in the
    ensemble.
    """
    model = parts[0].config
    config = named(name, model.max_batch_size)
    config.platform = "ensemble"
    for tensor in takes:
        _describe(config.input.add(), tensor, model)
    last = parts[-1].config
    again = {tensor.name for tensor in last.input} & {tensor.name for tensor in last.output}
    available: dict[str, Any] = {}
    for part in parts:
        available |= {part.names.get(tensor.name, tensor.name): tensor for tensor in part.config.output}
    for output in gives:
        described = config.output.add()
        described.name, described.data_type = output, available[output].data_type
        described.dims.extend(available[output].dims)
    used = {*gives, *(part.names.get(tensor.name, tensor.name) for part in parts for tensor in part.config.input)}
    for part in parts:
        step = config.ensemble_scheduling.step.add()
        step.model_name, step.model_version = part.config.name, -1
        for tensor in part.config.input:
            step.input_map[tensor.name] = _before(part.names.get(tensor.name, tensor.name), again)
        for tensor in part.config.output:
            called = part.names.get(tensor.name, tensor.name)
            if called in used:
                step.output_map[tensor.name] = called if part is parts[-1] else _before(called, again)
    mark(config, task)
    return Part(config, {"ensemble.txt": _EMPTY})


def _before(name: str, again: Collection[str]) -> str:
    return f"{name}_before" if name in again else name


def mark(config: Config, task: str) -> None:
    """Mark a configuration as the model that clients call for a task, unless the recipe has set the parameter."""
    if TASK not in config.parameters:
        config.parameters[TASK].string_value = task


def by_position(listed: Sequence[Part], signature: Signature) -> None:
    """Name the built model's tensors by their positions, if its backend knows no other names.

    Whoever calls the ensemble sees the names of the model. `signature` has the model's tensors in their order.
    """
    inputs, outputs = (
        {name: f"{word}__{position}" for position, name in enumerate(tensors_of)}
        for word, tensors_of in (("INPUT", signature.inputs), ("OUTPUT", signature.outputs))
    )
    configs = [part.config for part in listed]
    models = [each for each in configs if Backend.of(platform=each.platform, backend=each.backend) in BY_POSITION]
    for model in models:
        for described, names in ((model.input, inputs), (model.output, outputs)):
            for tensor in described:
                tensor.name = names[tensor.name]
        for warmup in model.model_warmup:
            contents = {inputs[name]: each.SerializeToString() for name, each in warmup.inputs.items()}
            warmup.inputs.clear()
            for name, content in contents.items():
                warmup.inputs[name].ParseFromString(content)
    called = [model.name for model in models]
    for step in (step for config in configs for step in config.ensemble_scheduling.step if step.model_name in called):
        for mapping, names in ((step.input_map, inputs), (step.output_map, outputs)):
            renamed = {names[name]: value for name, value in mapping.items()}
            mapping.clear()
            mapping.update(renamed)


def tensors(described: Any, model: Config) -> list[AnswerTensor]:
    """Return the inputs or outputs of a configuration as `AnswerTensor`s, without the batch axis."""
    from tritonclient.grpc import model_config_pb2

    rows = 0 if model.max_batch_size else 1
    types = model_config_pb2.DataType
    return [AnswerTensor(each.name, types.Name(each.data_type), tuple(each.dims)[rows:]) for each in described]


def _describe(described: Any, tensor: AnswerTensor, model: Config) -> None:
    """Write a tensor into an input or output of a configuration.

    Where Triton does not batch `model`, the tensor's dims begin with the first axis of the model's first input.
    """
    from tritonclient.grpc import model_config_pb2

    rows = () if model.max_batch_size else tuple(model.input[0].dims[:1])
    described.name, described.data_type = tensor.name, model_config_pb2.DataType.Value(tensor.type)
    described.dims.extend((*rows, *tensor.dims))


def _requirements(needs: Sequence[str]) -> dict[str, bytes]:
    if not needs:
        return {}
    pinned = (f"{each}=={_version(each)}" for each in needs)
    lines = ["# What model.py needs, beside numpy, in Triton's Python.", *pinned]
    return {REQUIREMENTS: ("\n".join(lines) + "\n").encode()}


def _version(package: str) -> str:
    """Return the installed version of a Python package, or else of a distribution with the same import package.

    So onnxruntime has the version of onnxruntime-gpu, and onnxruntime-gpu that of onnxruntime. Raises StepError where
    none is installed.
    """
    name = package.partition("[")[0]
    version = tools.version_of(name)
    if version == tools.MISSING:
        version = tools.version_of(tools.in_the_way(name) or name)
    if version == tools.MISSING:
        raise StepError(
            f"{package} is not installed, so requirements.txt of the package cannot name its version",
            hint=f"pip install {package}",
        )
    return version
