"""Scheduling: how requests wait, are put together and are answered."""

# Sources: "Model Configuration" and "Response Cache" in Triton's documentation; each refusal of Triton's own was seen
# on the server 2.51 (24.10).

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Path, Said, listed, not_of_an_ensemble
from engine.runtimes.backends import Backend

_DYNAMIC, _SEQUENCE = "dynamic_batching", "sequence_batching"


def rule(said: Said, about: About) -> Iterator[Fault]:
    """Yield what no scheduler of Triton takes, and what a package cannot be asked by."""
    yield from _fits_kind(said, about)
    if _DYNAMIC in said:
        yield from _dynamic(said[_DYNAMIC], about)
    if _SEQUENCE in said:
        yield from _sequences(said[_SEQUENCE], about)
    yield from _answers(said, about)


def _fits_kind(said: Said, about: About) -> Iterator[Fault]:
    for field in (_DYNAMIC, _SEQUENCE):
        if field in said and about.backend is Backend.ENSEMBLE:
            yield not_of_an_ensemble(field, "its schedule is the ensemble itself")
    if _DYNAMIC in said and about.batch == 0:
        what = "`dynamic_batching` of a model that takes no batches: max_batch_size is 0"
        yield Fault(what, (_DYNAMIC,), "leave it out, or serve a model whose first axis is a batch", at_key=True)
    if _SEQUENCE in said and about.part != "model":
        what = f"`sequence_batching` of the {about.part}: its requests belong to no sequence"
        yield Fault(what, (_SEQUENCE,), "leave it out", at_key=True)


def _dynamic(said: Mapping[str, Any], about: About) -> Iterator[Fault]:
    yield from _preferred(said.get("preferred_batch_size", ()), (_DYNAMIC, "preferred_batch_size"), about)
    levels = said.get("priority_levels", 0)
    default = said.get("default_priority_level")
    at = (_DYNAMIC, "default_priority_level")
    if levels and not 1 <= (default or 0) <= levels:
        found = "is missing" if default is None else f"is {default}"
        where = at if default is not None else (_DYNAMIC, "priority_levels")
        yield Fault(
            f"`default_priority_level` {found}: there are levels 1 to {levels}", where, f"1 to {levels} is meant"
        )
    if not levels and default:
        yield Fault("`default_priority_level` without `priority_levels`", at, "say how many levels there are")
    for level in said.get("priority_queue_policy", ()):
        if not 1 <= level <= levels:
            have = f"there are levels 1 to {levels}" if levels else "`priority_levels` does not say that there are any"
            yield Fault(f"no request has the priority {level}: {have}", (_DYNAMIC, "priority_queue_policy", str(level)),
                        f"1 to {levels} is meant" if levels else "say priority_levels", at_key=True)  # fmt: skip
    if levels > 1 and said.get("preserve_ordering"):
        what = f"`preserve_ordering` with {levels} priority levels: what is urgent could not come first"
        yield Fault(what, (_DYNAMIC, "preserve_ordering"), "leave one of them out")
    if said.get("preserve_ordering"):
        yield from _delayed(said)


def _delayed(said: Mapping[str, Any]) -> Iterator[Fault]:
    """Refuse queues that answer the late after all others, where answers have to keep their order."""
    policies = said.get("priority_queue_policy", {})
    queues: list[tuple[Path, Mapping[str, Any]]] = [
        (("default_queue_policy",), said.get("default_queue_policy", {})),
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


def _sequences(said: Mapping[str, Any], about: About) -> Iterator[Fault]:
    slots = said.get("direct", {}).get("minimum_slot_utilization")
    if slots is not None and not 0 <= slots <= 1:
        at = (_SEQUENCE, "direct", "minimum_slot_utilization")
        yield Fault(f"`minimum_slot_utilization` is {slots:g}: it is a share", at, "0 to 1 is meant")
    oldest = said.get("oldest", {})
    yield from _preferred(oldest.get("preferred_batch_size", ()), (_SEQUENCE, "oldest", "preferred_batch_size"), about)
    if oldest.get("max_candidate_sequences", 0) < 0:
        at = (_SEQUENCE, "oldest", "max_candidate_sequences")
        yield Fault(f"{oldest['max_candidate_sequences']} sequences at once", at, "at least 1 is meant")
    for index, control in enumerate(said.get("control_input", ())):
        yield from _control(control, (_SEQUENCE, "control_input", index), about)
    for index, state in enumerate(said.get("state", ())):
        yield from _state(state, (_SEQUENCE, "state", index), about)


def _state(said: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    for field, tensors in (("input_name", about.inputs), ("output_name", about.outputs)):
        name = said.get(field)
        if not name:
            yield Fault(f"a state needs its {field}", path, f"add {field}: ...")
        elif tensors is not None and name not in tensors:
            what = f"the model has no {field.partition('_')[0]} {name!r} to keep a state"
            yield Fault(what, (*path, field), listed(tensors))
    for index, first in enumerate(said.get("initial_state", ())):
        if "data_file" in first:
            what = f"the package has no file {first['data_file']!r} to begin a state with"
            yield Fault(what, (*path, "initial_state", index, "data_file"), "use zero_data: true")


_CORRELATIONS = ("TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING")
_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")


def _control(said: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    name = said.get("name")
    if not name:
        yield Fault("a control input needs a name", path, "add name: ..., an input of the model")
    elif about.inputs is not None and name not in about.inputs:
        what = f"the model has no input {name!r} to tell about sequences"
        yield Fault(what, (*path, "name"), listed(about.inputs))
    for index, control in enumerate(said.get("control", ())):
        at = (*path, "control", index)
        kind = control.get("kind", "CONTROL_SEQUENCE_START")
        given = [pair for pair in _PAIRS if control.get(pair)]
        if kind == "CONTROL_SEQUENCE_CORRID":
            if control.get("data_type") not in _CORRELATIONS:
                yield Fault(f"{kind} needs a data_type", at, f"one of {', '.join(_CORRELATIONS)}")
        elif len(given) != 1:
            found = "both of " + " and ".join(given) if given else "neither"
            hint = "say exactly one: int32_false_true: [0, 1]"
            yield Fault(f"{kind} needs one pair of values for false and true: {found} is there", at, hint)
        elif len(control[given[0]]) != 2:  # noqa: PLR2004 - false and true
            what = f"`{given[0]}` has {len(control[given[0]])} values: one for false, one for true"
            yield Fault(what, (*at, given[0]), "as in [0, 1]")


def _answers(said: Said, about: About) -> Iterator[Fault]:
    asked = said.get("model_transaction_policy", {}).get("decoupled", False)
    if "model_transaction_policy" in said and asked != about.decoupled:
        does = "answers in pieces" if about.decoupled else "gives one answer to a request"
        what = f"`decoupled: {str(asked).lower()}`: the {about.part} {does}, whatever its configuration says"
        yield Fault(what, ("model_transaction_policy", "decoupled"), "leave it out")
    if about.decoupled and said.get("response_cache", {}).get("enable"):
        what = f"Triton caches no answers of a decoupled model, and the {about.part} is one"
        yield Fault(what, ("response_cache", "enable"), "leave it out")
