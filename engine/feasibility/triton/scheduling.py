"""Scheduling: checks of Triton's queues, batches, sequences, responses, and of the instances that answer."""

# Sources: ValidateModelConfig in model_config_utils.cc of triton-inference-server/core; "Model Configuration" and
# "Response Cache" in Triton's documentation. Every refusal by Triton itself was observed on server 2.51 (24.10).

# Sources: ValidateInstanceGroup in model_config_utils.cc of triton-inference-server/core, InitOptimizationProfiles of
# triton-inference-server/tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path, unknown
from engine.runtimes.backends import Backend

_DYNAMIC, _SEQUENCE, _CACHE = "dynamic_batching", "sequence_batching", "response_cache"
_CORRELATIONS = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
"""The data types of an input that takes a sequence's number or name."""
_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")
"""The fields of a control input with the input's values for false and true; each field is for one data type."""
_GROUPS = "instance_group"


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each setting of scheduling that Triton refuses, or that requests to a package cannot use."""
    if _DYNAMIC in overrides:
        yield from _dynamic(overrides[_DYNAMIC], about)
    if _SEQUENCE in overrides:
        yield from _sequences(overrides[_SEQUENCE], about)
    decoupled = overrides.get("model_transaction_policy", {}).get("decoupled", False)
    if "model_transaction_policy" in overrides and decoupled != about.decoupled:
        does = "answers in pieces" if about.decoupled else "gives one answer to a request"
        what = f"`decoupled: {str(decoupled).lower()}`: the {about.part} {does}, whatever its configuration says"
        yield Fault(what, ("model_transaction_policy", "decoupled"), "leave it out")
    if overrides.get(_CACHE, {}).get("enable") and (about.decoupled or _SEQUENCE in overrides):
        of = "a decoupled model" if about.decoupled else "sequences"
        yield Fault(f"Triton caches no answers of {of}", (_CACHE, "enable"), "leave it out")


def _dynamic(batching: Mapping[str, Any], about: About) -> Iterator[Fault]:
    if about.batch == 0:
        what = "`dynamic_batching` of a model that takes no batches: max_batch_size is 0"
        yield Fault(what, (_DYNAMIC,), "leave it out, or serve a model whose first axis is a batch", at_key=True)
    yield from _preferred(batching, (_DYNAMIC,), about)
    levels, default = batching.get("priority_levels", 0), batching.get("default_priority_level", 0)
    there = f"there are levels 1 to {levels}" if levels else "`priority_levels` does not say that there are any"
    hint = f"1 to {levels} is meant" if levels else "say how many levels there are"
    if (levels or default) and not 1 <= default <= levels:
        field = "default_priority_level" if default else "priority_levels"
        yield Fault(f"`default_priority_level` is {default or 'missing'}: {there}", (_DYNAMIC, field), hint)
    policies = batching.get("priority_queue_policy", {})
    for level in policies:
        if not 1 <= level <= levels:
            at = (_DYNAMIC, "priority_queue_policy", str(level))
            yield Fault(f"no request has the priority {level}: {there}", at, hint, at_key=True)
    if not batching.get("preserve_ordering"):
        return
    if levels > 1:
        what = f"`preserve_ordering` with {levels} priority levels: what is urgent could not come first"
        yield Fault(what, (_DYNAMIC, "preserve_ordering"), "leave one of them out")
    queues: dict[Path, Mapping[str, Any]] = {
        ("default_queue_policy",): batching.get("default_queue_policy", {}),
        **{("priority_queue_policy", str(level)): policy for level, policy in policies.items()},
    }
    for queue, policy in queues.items():
        if policy.get("timeout_action") == "DELAY":
            what = "`timeout_action: DELAY` with `preserve_ordering`: what is late could not come last"
            yield Fault(what, (_DYNAMIC, *queue, "timeout_action"), "use REJECT, or leave preserve_ordering out")


def _preferred(batching: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    for index, size in enumerate(batching.get("preferred_batch_size", ())):
        if about.largest is not None and size > about.largest:
            hint = "lower it, or raise max_batch_size within the profiles"
            at = (*path, "preferred_batch_size", index)
            yield Fault(f"a preferred batch of {size}, and {about.batch_limit}", at, hint)


def _sequences(batching: Mapping[str, Any], about: About) -> Iterator[Fault]:
    if about.part != "model":
        what = f"`sequence_batching` of the {about.part}: its requests belong to no sequence"
        yield Fault(what, (_SEQUENCE,), "leave it out", at_key=True)
    yield from _preferred(batching.get("oldest", {}), (_SEQUENCE, "oldest"), about)
    for index, control_input in enumerate(batching.get("control_input", ())):
        path = (_SEQUENCE, "control_input", index)
        yield from unknown("input", control_input["name"], (*path, "name"), about.inputs)
        for number, control in enumerate(control_input.get("control", ())):
            yield from _control(control, (*path, "control", number))
    for index, state in enumerate(batching.get("state", ())):
        path = (_SEQUENCE, "state", index)
        yield from unknown("input", state["input_name"], (*path, "input_name"), about.inputs)
        yield from unknown("output", state["output_name"], (*path, "output_name"), about.outputs)
        for number, first in enumerate(state.get("initial_state", ())):
            if "data_file" in first:
                what = f"the package has no file {first['data_file']!r} to begin a state with"
                yield Fault(what, (*path, "initial_state", number, "data_file"), "use zero_data: true")


def _control(control: Mapping[str, Any], at: Path) -> Iterator[Fault]:
    kind = control.get("kind", "CONTROL_SEQUENCE_START")
    pairs: Sequence[str] = [pair for pair in _PAIRS if control.get(pair)]
    if kind == "CONTROL_SEQUENCE_CORRID":
        if control.get("data_type") not in _CORRELATIONS:
            yield Fault(f"{kind} needs a data_type", at, f"one of {', '.join(_CORRELATIONS)}")
    elif len(pairs) != 1:
        what = f"{kind} needs one pair of values for false and true: {' and '.join(pairs) or 'none'} is there"
        yield Fault(what, at, "say exactly one: int32_false_true: [0, 1]")
    elif len(control[pairs[0]]) != 2:  # noqa: PLR2004 - false and true
        what = f"`{pairs[0]}` has {len(control[pairs[0]])} values: one for false, one for true"
        yield Fault(what, (*at, pairs[0]), "as in [0, 1]")


def instance_groups(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each instance group that Triton refuses, or whose device differs from the package's device."""
    groups = overrides.get(_GROUPS, ())
    for index, group in enumerate(groups):
        yield from _placed(group, (_GROUPS, index), about)
        if "profile" in group:
            yield from _profiles(group["profile"], (_GROUPS, index, "profile"), about)
    if groups and all(group.get("passive") for group in groups):
        yield Fault("all groups are passive: nothing would answer", (_GROUPS, 0, "passive"), "leave one active")


def _placed(group: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    kind, on_cpu = group.get("kind", "KIND_AUTO"), "this package is for a cpu"
    if not about.on_gpu and kind == "KIND_GPU":
        what = f"KIND_GPU: {on_cpu}, and Triton would look for a GPU"
        yield Fault(what, (*path, "kind"), "use KIND_CPU, or leave the group out")
    if about.on_gpu and about.backend is not Backend.PYTHON and kind in ("KIND_CPU", "KIND_MODEL"):
        what = f"{kind}: this package is for a GPU, and its model runs on nothing else"
        yield Fault(what, (*path, "kind"), "use KIND_GPU, or leave the group out")
    if group.get("gpus") and (kind in ("KIND_CPU", "KIND_MODEL") or not about.on_gpu):
        why = f"the group is {kind}" if about.on_gpu else on_cpu
        yield Fault(f"`gpus`: {why}", (*path, "gpus"), "leave them out, or use KIND_GPU")
    if group.get("secondary_devices"):
        what = "`secondary_devices` are deep-learning accelerators, and the model is not built for any"
        yield Fault(what, (*path, "secondary_devices"), "leave them out")


def _profiles(names: list[str], at: Path, about: About) -> Iterator[Fault]:
    if about.backend is not Backend.TENSORRT:
        what = "`profile` is about TensorRT's optimization profiles; this model has none"
        yield Fault(what, at, "leave it out")
        return
    for number, name in enumerate(names):
        if not name.isdecimal():
            yield Fault(f"profiles are numbers, as text: {name!r} is none", (*at, number), 'as in ["0", "1"]')
        elif about.profiles is not None and int(name) >= about.profiles:
            what = f"the engine has no profile {name}: it has {about.profiles}, counted from 0"
            yield Fault(what, (*at, number), "leave it out: the package lists all of them")
