"""Scheduling: checks of the settings for Triton's queues, batches, sequences and responses."""

# Sources: "Model Configuration" and "Response Cache" in Triton's documentation. Every refusal by Triton itself was
# observed on server 2.51 (24.10).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path, tensor_names

_DYNAMIC, _SEQUENCE = "dynamic_batching", "sequence_batching"


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each setting of scheduling that Triton refuses, or that requests to a package cannot use."""
    yield from _fits_kind(overrides, about)
    if _DYNAMIC in overrides:
        yield from _dynamic(overrides[_DYNAMIC], about)
    if _SEQUENCE in overrides:
        yield from _sequences(overrides[_SEQUENCE], about)
    yield from _answers(overrides, about)


def _fits_kind(overrides: Overrides, about: About) -> Iterator[Fault]:
    if _DYNAMIC in overrides and about.batch == 0:
        what = "`dynamic_batching` of a model that takes no batches: max_batch_size is 0"
        yield Fault(what, (_DYNAMIC,), "leave it out, or serve a model whose first axis is a batch", at_key=True)
    if _SEQUENCE in overrides and about.part != "model":
        what = f"`sequence_batching` of the {about.part}: its requests belong to no sequence"
        yield Fault(what, (_SEQUENCE,), "leave it out", at_key=True)


def _dynamic(batching: Mapping[str, Any], about: About) -> Iterator[Fault]:
    yield from _preferred(batching.get("preferred_batch_size", ()), (_DYNAMIC, "preferred_batch_size"), about)
    levels = batching.get("priority_levels", 0)
    default = batching.get("default_priority_level")
    at = (_DYNAMIC, "default_priority_level")
    if levels and not 1 <= (default or 0) <= levels:
        problem = "is missing" if default is None else f"is {default}"
        where = at if default is not None else (_DYNAMIC, "priority_levels")
        yield Fault(
            f"`default_priority_level` {problem}: there are levels 1 to {levels}", where, f"1 to {levels} is meant"
        )
    if not levels and default:
        yield Fault("`default_priority_level` without `priority_levels`", at, "say how many levels there are")
    for level in batching.get("priority_queue_policy", ()):
        if not 1 <= level <= levels:
            have = f"there are levels 1 to {levels}" if levels else "`priority_levels` does not say that there are any"
            yield Fault(f"no request has the priority {level}: {have}", (_DYNAMIC, "priority_queue_policy", str(level)),
                        f"1 to {levels} is meant" if levels else "say priority_levels", at_key=True)  # fmt: skip
    if levels > 1 and batching.get("preserve_ordering"):
        what = f"`preserve_ordering` with {levels} priority levels: what is urgent could not come first"
        yield Fault(what, (_DYNAMIC, "preserve_ordering"), "leave one of them out")
    if batching.get("preserve_ordering"):
        yield from _delayed(batching)


def _delayed(batching: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for each queue that delays late requests, where responses have to keep the order of requests."""
    policies = batching.get("priority_queue_policy", {})
    queues: list[tuple[Path, Mapping[str, Any]]] = [
        (("default_queue_policy",), batching.get("default_queue_policy", {})),
        *((("priority_queue_policy", str(level)), policy) for level, policy in policies.items()),
    ]
    for at, policy in queues:
        if policy.get("timeout_action") == "DELAY":
            what = "`timeout_action: DELAY` with `preserve_ordering`: what is late could not come last"
            yield Fault(what, (_DYNAMIC, *at, "timeout_action"), "use REJECT, or leave preserve_ordering out")


def _preferred(sizes: Sequence[int], path: Path, about: About) -> Iterator[Fault]:
    for index, size in enumerate(sizes):
        if size < 1:
            yield Fault(f"a preferred batch of {size}", (*path, index), "at least 1 is meant")
        elif about.largest is not None and size > about.largest:
            hint = "lower it, or raise max_batch_size within the profiles"
            yield Fault(f"a preferred batch of {size}, and {about.batch_limit}", (*path, index), hint)


def _sequences(batching: Mapping[str, Any], about: About) -> Iterator[Fault]:
    slots = batching.get("direct", {}).get("minimum_slot_utilization")
    if slots is not None and not 0 <= slots <= 1:
        at = (_SEQUENCE, "direct", "minimum_slot_utilization")
        yield Fault(f"`minimum_slot_utilization` is {slots:g}: it is a share", at, "0 to 1 is meant")
    oldest = batching.get("oldest", {})
    yield from _preferred(oldest.get("preferred_batch_size", ()), (_SEQUENCE, "oldest", "preferred_batch_size"), about)
    if oldest.get("max_candidate_sequences", 0) < 0:
        at = (_SEQUENCE, "oldest", "max_candidate_sequences")
        yield Fault(f"{oldest['max_candidate_sequences']} sequences at once", at, "at least 1 is meant")
    for index, control in enumerate(batching.get("control_input", ())):
        yield from _control(control, (_SEQUENCE, "control_input", index), about)
    for index, state in enumerate(batching.get("state", ())):
        yield from _state(state, (_SEQUENCE, "state", index), about)


def _state(state: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    for field, tensors in (("input_name", about.inputs), ("output_name", about.outputs)):
        name = state.get(field)
        if not name:
            yield Fault(f"a state needs its {field}", path, f"add {field}: ...")
        elif tensors is not None and name not in tensors:
            what = f"the model has no {field.partition('_')[0]} {name!r} to keep a state"
            yield Fault(what, (*path, field), tensor_names(tensors))
    for index, first in enumerate(state.get("initial_state", ())):
        if "data_file" in first:
            what = f"the package has no file {first['data_file']!r} to begin a state with"
            yield Fault(what, (*path, "initial_state", index, "data_file"), "use zero_data: true")


_CORRELATIONS = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
"""The data types of an input that takes a sequence's number or name."""
_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")
"""The fields of a control input with the input's values for false and true; each field is for one data type."""


def _control(control_input: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    name = control_input.get("name")
    if not name:
        yield Fault("a control input needs a name", path, "add name: ..., an input of the model")
    elif about.inputs is not None and name not in about.inputs:
        what = f"the model has no input {name!r} to tell about sequences"
        yield Fault(what, (*path, "name"), tensor_names(about.inputs))
    for index, control in enumerate(control_input.get("control", ())):
        at = (*path, "control", index)
        kind = control.get("kind", "CONTROL_SEQUENCE_START")
        pairs = [pair for pair in _PAIRS if control.get(pair)]
        if kind == "CONTROL_SEQUENCE_CORRID":
            if control.get("data_type") not in _CORRELATIONS:
                yield Fault(f"{kind} needs a data_type", at, f"one of {', '.join(_CORRELATIONS)}")
        elif len(pairs) != 1:
            present = "both of " + " and ".join(pairs) if pairs else "neither"
            hint = "say exactly one: int32_false_true: [0, 1]"
            yield Fault(f"{kind} needs one pair of values for false and true: {present} is there", at, hint)
        elif len(control[pairs[0]]) != 2:  # noqa: PLR2004 - false and true
            what = f"`{pairs[0]}` has {len(control[pairs[0]])} values: one for false, one for true"
            yield Fault(what, (*at, pairs[0]), "as in [0, 1]")


def _answers(overrides: Overrides, about: About) -> Iterator[Fault]:
    decoupled = overrides.get("model_transaction_policy", {}).get("decoupled", False)
    if "model_transaction_policy" in overrides and decoupled != about.decoupled:
        does = "answers in pieces" if about.decoupled else "gives one answer to a request"
        what = f"`decoupled: {str(decoupled).lower()}`: the {about.part} {does}, whatever its configuration says"
        yield Fault(what, ("model_transaction_policy", "decoupled"), "leave it out")
    if about.decoupled and overrides.get("response_cache", {}).get("enable"):
        what = f"Triton caches no answers of a decoupled model, and the {about.part} is one"
        yield Fault(what, ("response_cache", "enable"), "leave it out")
