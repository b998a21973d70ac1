"""What Triton refuses when it loads a model: rules for configurations, held against every package that is written."""

# Source of each rule: a function of triton-inference-server/core, src/model_config_utils.cc or
# src/ensemble_scheduler/ensemble_utils.cc (commit 73aad7c). Rules that need the server's GPUs are not here.

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from engine.errors import StepError
from engine.kit.triton.config import Config

_ENSEMBLE = "ensemble"
_ANY = -1
"""The size of an axis that Triton leaves free."""
VERSION = 1
"""The version of each model of a package, and the name of the folder that holds it."""
_LATEST = -1
"""What a step of an ensemble names for the latest version of a model."""


@dataclass(frozen=True)
class Rule:
    """A rule: the problems of a configuration, and the function of Triton that refuses a model with such a problem."""

    source: str
    problems: Callable[[Config], Iterator[str]]


def refuse(configs: Sequence[Config]) -> None:
    """Raise StepError where Triton would refuse to load a model of a repository, given by all its configurations."""
    facts = [f"{config.name}: {problem} ({rule.source})"
             for config in configs for rule in RULES for problem in rule.problems(config)]  # fmt: skip
    by_name = {config.name: config for config in configs}
    for config in configs:
        if config.platform == _ENSEMBLE:
            facts += [f"{config.name}: {problem} (ValidateTensorMapping)" for problem in _mapped(config, by_name)]
    refuse_problems(facts)


def refuse_problems(facts: Sequence[str]) -> None:
    """Raise StepError where there are problems."""
    if facts:
        raise StepError(
            "Triton would refuse to load a model of the package",
            facts,
            "change the fields under package.triton that the problem names; without such a field, please report it",
        )


def _tensors(config: Config) -> Iterator[str]:
    for tensor in (*config.input, *config.output):
        where = f"tensor {tensor.name!r}"
        if not tensor.name:
            yield "a tensor has no name"
        if not tensor.data_type:
            yield f"{where} has no data_type"
        if not tensor.dims:
            yield f"{where} has no dims"
        if any(size < 1 and size != _ANY for size in tensor.dims):
            yield f"{where}: a size in dims is {_ANY} or at least 1, not {list(tensor.dims)}"
        if tensor.HasField("reshape"):
            yield from _reshaped(where, tensor, batched=config.max_batch_size > 0)


def _reshaped(where: str, tensor: Any, *, batched: bool) -> Iterator[str]:
    shape = list(tensor.reshape.shape)
    if not shape and not batched:
        yield f"{where}: an empty reshape needs max_batch_size above 0, because Triton has no scalars"
    if any(size < 1 and size != _ANY for size in shape):
        yield f"{where}: a size in reshape is {_ANY} or at least 1, not {shape}"
    elif _parts(tensor.dims) != _parts(shape):
        yield f"{where}: dims {list(tensor.dims)} and reshape {shape} hold different numbers of elements"


def _parts(shape: Sequence[int]) -> list[int]:
    """Return the number of elements between the free axes of a shape."""
    parts: list[list[int]] = [[]]
    for size in shape:
        if size == _ANY:
            parts.append([])
        else:
            parts[-1].append(size)
    return [prod(part) for part in parts]


def _batching(config: Config) -> Iterator[str]:
    if config.max_batch_size < 0:
        yield f"max_batch_size: {config.max_batch_size} is negative"
    for size in config.dynamic_batching.preferred_batch_size:
        if not 0 < size <= config.max_batch_size:
            yield f"preferred_batch_size: {size} is not between 1 and max_batch_size: {config.max_batch_size}"
    batching, levels = config.dynamic_batching, config.dynamic_batching.priority_levels
    if levels and not 1 <= batching.default_priority_level <= levels:
        yield f"default_priority_level: {batching.default_priority_level} is not between 1 and {levels}"
    if levels and any(not 1 <= level <= levels for level in batching.priority_queue_policy):
        yield f"priority_queue_policy names a level that is not between 1 and {levels}"
    if batching.preserve_ordering and levels > 1:
        yield "preserve_ordering allows one priority level only"


def _caching(config: Config) -> Iterator[str]:
    if config.response_cache.enable and config.HasField("sequence_batching"):
        yield "response_cache does not work with sequence_batching"
    if config.response_cache.enable and config.model_transaction_policy.decoupled:
        yield "response_cache does not work with decoupled responses"


def _instances(config: Config) -> Iterator[str]:
    for group in config.instance_group:
        if group.gpus and group.kind in {group.KIND_CPU, group.KIND_MODEL}:
            yield f"an instance group of kind {group.Kind.Name(group.kind)} names gpus"
        if group.profile and config.platform != "tensorrt_plan":
            yield "an instance group names profiles, and only a TensorRT engine has some"
        if any(not profile.isdecimal() for profile in group.profile):
            yield f"a profile is a number from 0 on, not {', '.join(group.profile)}"


def _ensemble(config: Config) -> Iterator[str]:
    if config.platform != _ENSEMBLE:
        if config.HasField("ensemble_scheduling"):
            yield "only a model of platform ensemble has ensemble_scheduling"
        return
    if config.backend:
        yield f"an ensemble has no backend, and this has {config.backend!r}"
    for name in ("instance_group", "model_warmup"):
        if len(getattr(config, name)):
            yield f"an ensemble has no {name}"
    if config.HasField("optimization"):
        yield "an ensemble has no optimization"
    if not config.ensemble_scheduling.step:
        yield "an ensemble has at least one step"


def _graph_of_ensemble(config: Config) -> Iterator[str]:
    if config.platform != _ENSEMBLE:
        return
    steps = config.ensemble_scheduling.step
    given = [tensor.name for tensor in config.input]
    written = [name for step in steps for name in step.output_map.values()]
    used = {name for step in steps for name in step.input_map.values()}
    for name in given:
        if name not in used:
            yield f"input {name!r} is not used"
    for name in sorted({name for name in [*given, *written] if [*given, *written].count(name) > 1}):
        yield f"tensor {name!r} is written more than once"
    for name in sorted(used - {*given, *written}):
        yield f"tensor {name!r} is read, and nothing writes it"
    for tensor in config.output:
        if tensor.name not in written:
            yield f"output {tensor.name!r} is written by no step"
    for name in sorted(set(written) - used - {tensor.name for tensor in config.output}):
        yield f"tensor {name!r} is written, and nothing reads it"


def _mapped(config: Config, by_name: Mapping[str, Config]) -> Iterator[str]:
    """Yield the problems between an ensemble and the models of its steps."""
    for step in config.ensemble_scheduling.step:
        model = by_name.get(step.model_name)
        if model is None:
            yield f"its step {step.model_name!r} is no model of the repository"
            continue
        if step.model_version not in {_LATEST, VERSION}:
            yield f"its step {model.name!r} names version {step.model_version}, and the repository has {VERSION}"
        if config.max_batch_size > model.max_batch_size:
            yield f"max_batch_size: {config.max_batch_size} is more than {model.max_batch_size}, that of {model.name}"
        for name in sorted(set(step.input_map) - {tensor.name for tensor in model.input}):
            yield f"{model.name} has no input {name!r}"
        for name in sorted(set(step.output_map) - {tensor.name for tensor in model.output}):
            yield f"{model.name} has no output {name!r}"
        for tensor in model.input:
            if tensor.name not in step.input_map and not tensor.optional:
                yield f"the input {tensor.name!r} of {model.name} gets nothing"
    yield from _types(config, by_name)


def _types(config: Config, by_name: Mapping[str, Config]) -> Iterator[str]:
    """Yield the tensors of an ensemble that have different types in different models."""
    types = {tensor.name: tensor.data_type for tensor in (*config.input, *config.output)}
    for step in config.ensemble_scheduling.step:
        if step.model_name not in by_name:
            continue
        model = by_name[step.model_name]
        for names, tensors in ((step.input_map, model.input), (step.output_map, model.output)):
            for tensor in tensors:
                name = names.get(tensor.name)
                if name and types.setdefault(name, tensor.data_type) != tensor.data_type:
                    yield f"tensor {name!r} has another data_type in {model.name}"


RULES = (
    Rule("ValidateIOShape", _tensors),
    Rule("ValidateModelConfig", _batching),
    Rule("ValidateModelConfig", _caching),
    Rule("ValidateInstanceGroup", _instances),
    Rule("ValidateEnsembleSchedulingConfig", _ensemble),
    Rule("ValidateEnsembleSchedulingConfig", _graph_of_ensemble),
)
"""The rules for the configuration of one model."""
