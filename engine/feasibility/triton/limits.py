"""Limits: what Triton demands of single fields beyond their types in model_config.proto."""

# Sources: model_config_utils.cc and sequence_batch_scheduler.cc of triton-inference-server/core, ValidateGraphSpec of
# triton-inference-server/tensorrt_backend, and the README of triton-inference-server/onnxruntime_backend. A value that
# Triton takes and then ignores, such as no instances, is refused here too.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from engine.feasibility.triton.fault import FREE, About, Fault, Overrides, Path
from engine.recipe.model_config import MESSAGES, MODEL_VERSION


class Limit(NamedTuple):
    """The least and the greatest number that a field, or each item of its list, may have, and a hint for others."""

    least: float
    greatest: float = inf
    hint: str = ""


LIMITS: Mapping[str, Limit] = {
    "ModelConfig.max_batch_size": Limit(0),
    "ModelDynamicBatching.preferred_batch_size": Limit(1),
    "ModelInstanceGroup.count": Limit(1, hint="leave it out, and Triton takes a number of its own"),
    "ModelInstanceGroup.gpus": Limit(0),
    "ModelOptimizationPolicy.Cuda.GraphSpec.Shape.dim": Limit(0, hint="a CUDA graph has whole sizes, as in dim: [128]"),
    "ModelOptimizationPolicy.Graph.level": Limit(-1, 2, "-1 (basic), 1 (extended), 2 (none) or 0 (all) is meant"),
    "ModelSequenceBatching.StrategyDirect.minimum_slot_utilization": Limit(0, 1),
    "ModelSequenceBatching.StrategyOldest.max_candidate_sequences": Limit(0),
    "ModelSequenceBatching.StrategyOldest.preferred_batch_size": Limit(1),
    "ModelVersionPolicy.Latest.num_versions": Limit(1),
    "ModelVersionPolicy.Specific.versions": Limit(
        MODEL_VERSION, MODEL_VERSION, f"a package has version {MODEL_VERSION} alone"
    ),
    "ModelWarmup.Input.dims": Limit(1, hint="a warm-up has whole sizes, as in dims: [16]"),
}
"""The numbers of a field, by the names of its message and of the field."""
SHAPES = ("ModelInput.dims", "ModelOutput.dims", "ModelTensorReshape.shape")
"""Fields with the sizes of a tensor, each of which is 1 or more, or FREE."""
NEEDED: Mapping[str, Mapping[str, str]] = {
    "BatchInput": {"source_input": "[...]", "target_name": "[...]", "data_type": "TYPE_FP32"},
    "BatchOutput": {"source_input": "[...]", "target_name": "[...]"},
    "ModelInput": {"name": "...", "data_type": "TYPE_FP32", "dims": "[-1]"},
    "ModelOutput": {"name": "...", "data_type": "TYPE_FP32", "dims": "[-1]"},
    "ModelMetrics.MetricControl": {"metric_identifier": "{family: ...}"},
    "ModelMetrics.MetricControl.MetricIdentifier": {"family": "..."},
    "ModelRateLimiter.Resource": {"name": "...", "count": "1"},
    "ModelRepositoryAgents.Agent": {"name": "checksum"},
    "ModelSequenceBatching.ControlInput": {"name": "..."},
    "ModelSequenceBatching.State": {"input_name": "...", "output_name": "..."},
    "ModelVersionPolicy.Latest": {"num_versions": "1"},
    "ModelVersionPolicy.Specific": {"versions": f"[{MODEL_VERSION}]"},
    "ModelWarmup": {"name": "..."},
    "ModelWarmup.Input": {"data_type": "TYPE_FP32"},
}
"""The fields that a message must have, each with an example of its value, by the name of the message."""
DISTINCT = {
    "ModelConfig.input": "name", "ModelConfig.output": "name", "ModelConfig.model_warmup": "name",
    "ModelInstanceGroup.gpus": "", "ModelInstanceGroup.profile": "",
}  # fmt: skip
"""Lists whose items must differ, with the field by which messages differ."""


def rule(overrides: Overrides, _about: About) -> Iterator[Fault]:
    """Yield a fault for each field that is missing, each number outside its limits, and each item listed twice."""
    yield from _message("ModelConfig", overrides, ())


def _message(kind: str, fields: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    for name, example in NEEDED.get(kind, {}).items():
        if not fields.get(name):
            what = f"`{name}` is missing: Triton's {kind.rpartition('.')[2]} needs it"
            yield Fault(what, (*path, name) if name in fields else path, f"add it, as in {name}: {example}")
    for name, value in fields.items():
        field, at = f"{kind}.{name}", (*path, name)
        if field in LIMITS or field in SHAPES:
            yield from _numbers(name, value, at, LIMITS.get(field))
        if field in DISTINCT:
            yield from _twice(value, DISTINCT[field], at)
        yield from _below(MESSAGES[kind][name], value, at)


def _below(kind: str, value: Any, path: Path) -> Iterator[Fault]:
    """Yield the faults in a value that is a message, a list or a map."""
    if kind in MESSAGES:
        yield from _message(kind, value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _below(kind[1:-1], item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _below(kind[1:-1].partition(":")[2], item, (*path, str(key)))


def _numbers(name: str, value: Any, path: Path, limit: Limit | None) -> Iterator[Fault]:
    """Yield a fault for each number outside the limit; where it is None, the numbers are sizes of a tensor."""
    least, greatest, hint = limit or Limit(1, hint=f"{FREE} stands for any size")
    for index, number in enumerate(value) if isinstance(value, list) else [(None, value)]:
        if not least <= number <= greatest and not (limit is None and number == FREE):
            bound = f"at least {least:g}" if number < least else f"at most {greatest:g}"
            at, shown = (path, name) if index is None else ((*path, index), f"{name}[{index}]")
            yield Fault(f"`{shown}` is {number:g}; {bound} is meant", at, hint)


def _twice(items: list[Any], field: str, path: Path) -> Iterator[Fault]:
    values = [item.get(field) if field else item for item in items]
    for index, value in enumerate(values):
        if value in values[:index]:
            at = (*path, index, field) if field else (*path, index)
            yield Fault(f"{value!r} is listed twice in `{path[-1]}`", at, "leave one out, or name it otherwise")
