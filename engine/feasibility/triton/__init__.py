"""Triton's rules: what Triton refuses in a model's configuration, or accepts and then ignores."""

# `recipe check` asks them about the overrides in a recipe, and `package` about overrides and whole configurations.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton import (
    cuda_graphs,
    identity,
    instances,
    limits,
    optimization,
    scheduling,
    sizes,
    tensors,
    warmup,
)
from engine.feasibility.triton.fault import About, ConfigTensor, Fault, Overrides, Rule
from engine.feasibility.triton.typed import typed
from engine.runtimes.backends import Backend

__all__ = ["About", "ConfigTensor", "Fault", "check", "problems"]

_SCHEDULE, _REFUSED = "its schedule is the ensemble itself", "Triton refuses it"
_NOT_OF_ENSEMBLES = {
    "backend": _REFUSED, "dynamic_batching": _SCHEDULE, "sequence_batching": _SCHEDULE, "instance_group": _REFUSED,
    "optimization": _REFUSED, "model_warmup": _REFUSED,
}  # fmt: skip
"""Fields of Triton's configuration that an ensemble cannot have, each with the reason."""


def check(overrides: Mapping[str, Any], about: About) -> None:
    """Raise Fault for the first override that Triton would refuse, or accept and ignore."""
    values = typed(overrides, about.release)
    for fault in identity.nulls(overrides, about):
        raise fault
    for rule in (limits.rule, identity.rule, *_RULES, optimization.rule, warmup.rule, sizes.rule):
        for fault in rule(values, about):
            raise fault


def problems(config: Mapping[str, Any], about: About) -> Iterator[str]:
    """Yield why Triton would refuse to load a model with a configuration that the package has written."""
    values = typed(config)
    faults = [*limits.rule(values, about)] or [fault for rule in _RULES for fault in rule(values, about)]
    for fault in faults:
        yield f"{fault.what} ({'.'.join(str(segment) for segment in fault.path)})"


def _ensemble(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field that an ensemble cannot have, or that only an ensemble has."""
    if about.backend is not Backend.ENSEMBLE:
        if "ensemble_scheduling" in overrides:
            what = f"`ensemble_scheduling` of the {about.part}, which is no ensemble"
            yield Fault(what, ("ensemble_scheduling",), "leave it out", at_key=True)
        return
    for field, reason in _NOT_OF_ENSEMBLES.items():
        if overrides.get(field, "") != "":
            what = f"an ensemble has no `{field}`: {reason}"
            yield Fault(what, (field,), "say it of the models that it is made of", at_key=True)


_RULES: tuple[Rule, ...] = (_ensemble, tensors.rule, scheduling.rule, instances.rule, cuda_graphs.rule)
"""The rules that hold for overrides and for whole configurations."""
