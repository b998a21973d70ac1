"""Checks for overrides of Triton's configuration in a recipe that Triton refuses, or accepts and then ignores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton import identity, instances, optimization, scheduling, sizes, tensors, warmup
from engine.feasibility.triton.fault import About, ConfigTensor, Fault, Overrides, Rule
from engine.feasibility.triton.typed import typed
from engine.runtimes.backends import Backend

__all__ = ["About", "ConfigTensor", "Fault", "check", "faults"]

_RULES: tuple[Rule, ...] = (
    identity.rule,
    tensors.rule,
    scheduling.rule,
    instances.rule,
    optimization.rule,
    warmup.rule,
    sizes.rule,
)
_NEEDED = ("input", "output", "platform", "backend", "name", "ensemble_scheduling", "model_transaction_policy")
"""Fields of Triton's configuration that every package needs; an override with `null` must not remove them."""
_SCHEDULE, _REFUSED = "its schedule is the ensemble itself", "Triton refuses it"
_NOT_OF_ENSEMBLES = {
    "dynamic_batching": _SCHEDULE,
    "sequence_batching": _SCHEDULE,
    "instance_group": _REFUSED,
    "optimization": _REFUSED,
    "model_warmup": _REFUSED,
}
"""Fields of Triton's configuration that an ensemble cannot have, each with the reason."""


def check(overrides: Mapping[str, Any], about: About) -> None:
    """Raise Fault for the first override that Triton would refuse, or accept and ignore."""
    fault = next(faults(overrides, about), None)
    if fault is not None:
        raise fault


def faults(overrides: Mapping[str, Any], about: About) -> Iterator[Fault]:
    """Yield each fault in the overrides of one model. Raises Fault for a value of the wrong type."""
    values = typed(overrides)
    for name in _NEEDED:
        if name in overrides and overrides[name] is None:
            yield Fault(f"`{name}: null` takes out what the package needs", (name,), "leave it out", at_key=True)
    yield from _parameters(overrides.get("parameters", {}), about)
    if "max_batch_size" in values and about.part != "model":
        yield from _batches(values["max_batch_size"], about)
    if about.backend is Backend.ENSEMBLE:
        yield from _not_of_ensembles(values)
    for rule in _RULES:
        yield from rule(values, about)


def _not_of_ensembles(overrides: Overrides) -> Iterator[Fault]:
    """Yield a fault for each field that an ensemble cannot have."""
    for field, reason in _NOT_OF_ENSEMBLES.items():
        if field in overrides:
            what = f"an ensemble has no `{field}`: {reason}"
            yield Fault(what, (field,), "say it of the models that it is made of", at_key=True)


def _parameters(parameters: Mapping[str, Any] | None, about: About) -> Iterator[Fault]:
    """Yield a fault for each `null` that would remove a parameter that clients or the package read."""
    if parameters is None and about.parameters:
        what = f"`parameters: null` takes out what the package needs: {', '.join(about.parameters)}"
        yield Fault(what, ("parameters",), "leave it out", at_key=True)
    for name in about.parameters:
        if parameters is not None and parameters.get(name, "") is None:
            what = f"`{name}: null` takes out what the package needs"
            yield Fault(what, ("parameters", name), "leave it out", at_key=True)


def _batches(size: int, about: About) -> Iterator[Fault]:
    """Yield a fault where a part has another max_batch_size than the model, as an ensemble passes on whole batches."""
    if size < 0 or (about.most is not None and size > about.most) or about.batch not in (None, size):
        most = about.batch if about.batch is not None else f"at most {about.most}"
        what = f"max_batch_size: {size} for the {about.part}, and the package is made for {most}"
        yield Fault(what, ("max_batch_size",), "say package.triton.max_batch_size: it is for all of the package")
