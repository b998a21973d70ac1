"""Identity: the fields, set by the package itself, by which Triton finds a model, its backend and its files."""

from __future__ import annotations

from collections.abc import Iterator

from engine.feasibility.triton.fault import About, Fault, Overrides
from engine.runtimes.backends import Backend

VERSION = 1
"""The only version of each model in a package."""
_STEPS = ("step",)
"""Fields of `ensemble_scheduling` whose values the package itself sets."""


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field by which Triton would look for a model, backend, file or version that is missing."""
    yield from _own_fields(overrides, about)
    yield from _files(overrides)
    if "version_policy" in overrides:
        yield from _versions(overrides)
    for index, agent in enumerate(overrides.get("model_repository_agents", {}).get("agents", ())):
        if not agent.get("name"):
            yield Fault("an agent needs its name", ("model_repository_agents", "agents", index), "as in name: checksum")


def _own_fields(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each field whose value differs from the value that the package itself sets."""
    own = {
        "platform": about.backend.platform,
        "backend": about.backend.backend,
        "default_model_filename": about.backend.file,
    }
    if about.name is not None:
        own["name"] = about.name
    for field, mine in own.items():
        if field in overrides and overrides[field] not in (mine, ""):
            means = f"it is {mine!r}" if mine else "it has none"
            what = f"`{field}` cannot be {overrides[field]!r} for the {about.part} of this package: {means}"
            yield Fault(what, (field,), "leave it out; what the model is run by is the recipe's `target`")
    if overrides.get("runtime"):
        what = f"`runtime` is the library of a backend, and the package brings none: {overrides['runtime']!r}"
        yield Fault(what, ("runtime",), "leave it out; what the model is run by is the recipe's `target.runtime`")
    scheduled = overrides.get("ensemble_scheduling")
    if scheduled is not None and about.backend is not Backend.ENSEMBLE:
        what = f"`ensemble_scheduling` of the {about.part}, which is no ensemble"
        yield Fault(what, ("ensemble_scheduling",), "leave it out", at_key=True)
    elif scheduled and any(field in scheduled for field in _STEPS):
        what = "`ensemble_scheduling.step` is how the package fits together"
        hint = "leave it out; package.triton.tokenizer: false leaves the tokenizer out"
        yield Fault(what, ("ensemble_scheduling", "step"), hint, at_key=True)


def _files(overrides: Overrides) -> Iterator[Fault]:
    for field, names in (
        ("cc_model_filenames", list(overrides.get("cc_model_filenames", {}).values())),
        ("model_operations", overrides.get("model_operations", {}).get("op_library_filename", [])),
    ):
        if names:
            what = f"`{field}` names a file that the package does not have: {names[0]!r}"
            yield Fault(what, (field,), "leave it out", at_key=True)


def _versions(overrides: Overrides) -> Iterator[Fault]:
    policy = overrides["version_policy"]
    if "latest" in policy and policy["latest"].get("num_versions", 0) < 1:
        at = ("version_policy", "latest", *(["num_versions"] if "num_versions" in policy["latest"] else []))
        yield Fault("`latest` of no versions: Triton would load none", at, "add num_versions: 1")
    if "specific" not in policy:
        return
    at = ("version_policy", "specific")
    versions = policy["specific"].get("versions", [])
    if not versions:
        yield Fault("`specific` names no version: Triton would load none", at, f"add versions: [{VERSION}]")
    for index, version in enumerate(versions):
        if version != VERSION:
            what = f"the package has no version {version}: it has version {VERSION} alone"
            yield Fault(what, (*at, "versions", index), f"use versions: [{VERSION}], or leave it out")
