"""Overrides of Triton's configuration, held against what Triton would refuse, or take and not do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton import identity, instances, optimization, scheduling, sizes, tensors, warmup
from engine.feasibility.triton.fault import About, ConfigTensor, Fault, Rule
from engine.feasibility.triton.typed import typed

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
"""Fields that a package cannot do without."""


def check(overrides: Mapping[str, Any], about: About) -> None:
    """Raise Fault for the first override that Triton would refuse, or take and not do."""
    fault = next(faults(overrides, about), None)
    if fault is not None:
        raise fault


def faults(overrides: Mapping[str, Any], about: About) -> Iterator[Fault]:
    """Yield what is wrong with the overrides of one model; what does not even fit its type is raised."""
    said = typed(overrides)
    for name in _NEEDED:
        if name in overrides and overrides[name] is None:
            yield Fault(f"`{name}: null` takes out what the package needs", (name,), "leave it out", at_key=True)
    yield from _kept(overrides.get("parameters", {}), about)
    if "max_batch_size" in said and about.part != "model":
        yield from _batches(said["max_batch_size"], about)
    for rule in _RULES:
        yield from rule(said, about)


def _kept(parameters: Mapping[str, Any] | None, about: About) -> Iterator[Fault]:
    """Refuse to take out the parameters by which clients and the package find their way."""
    if parameters is None and about.parameters:
        what = f"`parameters: null` takes out what the package needs: {', '.join(about.parameters)}"
        yield Fault(what, ("parameters",), "leave it out", at_key=True)
    for name in about.parameters:
        if parameters is not None and parameters.get(name, "") is None:
            what = f"`{name}: null` takes out what the package needs"
            yield Fault(what, ("parameters", name), "leave it out", at_key=True)


def _batches(size: int, about: About) -> Iterator[Fault]:
    """Refuse a part that takes other batches than the model: the ensemble hands all of them on."""
    if size < 0 or (about.most is not None and size > about.most) or about.batch not in (None, size):
        most = about.batch if about.batch is not None else f"at most {about.most}"
        what = f"max_batch_size: {size} for the {about.part}, and the package is made for {most}"
        yield Fault(what, ("max_batch_size",), "say package.triton.max_batch_size: it is for all of the package")
