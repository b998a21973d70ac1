"""Triton's rules: what Triton refuses in a model's configuration, or accepts and then ignores."""

# `recipe check` asks them about the overrides in a recipe, and `package` about overrides and whole configurations.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton import limits, optimization, scheduling, tensors, warmup
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
_NEEDED = ("input", "output", "platform", "backend", "name", "ensemble_scheduling", "model_transaction_policy")
"""Fields of Triton's configuration that every package needs; an override with `null` must not remove them."""


def check(overrides: Mapping[str, Any], about: About) -> None:
    """Raise Fault for the first override that Triton would refuse, or accept and ignore."""
    values = typed(overrides, about.release)
    for fault in _nulls(overrides, about):
        raise fault
    for rule in (limits.rule, _owned, *_RULES, optimization.rule, warmup.rule, tensors.sizes):
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


def _nulls(overrides: Mapping[str, Any], about: About) -> Iterator[Fault]:
    """Yield a fault for each `null` that would remove a field or a parameter that the package needs."""
    parameters = overrides.get("parameters", {})
    removed = [(name,) for name in _NEEDED if overrides.get(name, "") is None]
    if parameters is None and about.parameters:
        removed.append(("parameters",))
    own = [("parameters", name) for name in about.parameters if parameters and parameters.get(name, "") is None]
    for path in (*removed, *own):
        yield Fault(f"`{path[-1]}: null` takes out what the package needs", path, "leave it out", at_key=True)


def _owned(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field by which Triton would look for a model, backend or file that is missing."""
    backend, own = about.backend, {"name": about.name} if about.name is not None else {}
    own |= {"platform": backend.platform, "backend": backend.backend, "default_model_filename": backend.file}
    for field, mine in {**own, "runtime": ""}.items():
        if overrides.get(field, "") not in (mine, ""):
            means = f"it is {mine!r}" if mine else "it has none"
            what = f"`{field}` cannot be {overrides[field]!r} for the {about.part} of this package: {means}"
            yield Fault(what, (field,), "leave it out; what the model is run by is the recipe's `target`")
    for field, names in (
        ("cc_model_filenames", list(overrides.get("cc_model_filenames", {}).values())),
        ("model_operations", overrides.get("model_operations", {}).get("op_library_filename", [])),
    ):
        if names:
            what = f"`{field}` names a file that the package does not have: {names[0]!r}"
            yield Fault(what, (field,), "leave it out", at_key=True)
    if backend is Backend.ENSEMBLE and "step" in overrides.get("ensemble_scheduling", {}):
        what = "`ensemble_scheduling.step` is how the package fits together"
        hint = "leave it out; package.triton.tokenizer: false leaves the tokenizer out"
        yield Fault(what, ("ensemble_scheduling", "step"), hint, at_key=True)
    size = overrides.get("max_batch_size")
    if about.part == "model" or size is None:
        return
    if (about.most is not None and size > about.most) or about.batch not in (None, size):
        most = about.batch if about.batch is not None else f"at most {about.most}"
        what = f"max_batch_size: {size} for the {about.part}, and the package is made for {most}"
        yield Fault(what, ("max_batch_size",), "say package.triton.max_batch_size: it is for all of the package")


_RULES: tuple[Rule, ...] = (
    _ensemble, tensors.rule, scheduling.rule, scheduling.instance_groups, optimization.cuda_graphs,
)  # fmt: skip
"""The rules that hold for overrides and for whole configurations."""
