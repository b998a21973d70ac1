"""Identity: fields by which Triton finds a model, its backend and its files; a package has them right already."""

from __future__ import annotations

from collections.abc import Iterator

from engine.feasibility.triton.fault import About, Fault, Said
from engine.runtimes.backends import Backend

VERSION = 1
"""The version that a package has of each model."""
_STEPS = ("step",)


def rule(said: Said, about: About) -> Iterator[Fault]:
    """Yield what would make Triton look for another model, backend, file or version than there is."""
    yield from _own_words(said, about)
    yield from _files(said)
    if "version_policy" in said:
        yield from _versions(said)
    for index, agent in enumerate(said.get("model_repository_agents", {}).get("agents", ())):
        if not agent.get("name"):
            yield Fault("an agent needs its name", ("model_repository_agents", "agents", index), "as in name: checksum")


def _own_words(said: Said, about: About) -> Iterator[Fault]:
    """Refuse another word for what the package has decided; the same one is fine: configurations are pasted."""
    own = {
        "platform": about.backend.platform,
        "backend": about.backend.backend,
        "default_model_filename": about.backend.file,
    }
    if about.name is not None:
        own["name"] = about.name
    for field, mine in own.items():
        if field in said and said[field] not in (mine, ""):
            means = f"it is {mine!r}" if mine else "it has none"
            what = f"`{field}` cannot be {said[field]!r} for the {about.part} of this package: {means}"
            yield Fault(what, (field,), "leave it out; what the model is run by is the recipe's `target`")
    if said.get("runtime"):
        what = f"`runtime` is the library of a backend, and the package brings none: {said['runtime']!r}"
        yield Fault(what, ("runtime",), "leave it out; what the model is run by is the recipe's `target.runtime`")
    scheduled = said.get("ensemble_scheduling")
    if scheduled is not None and about.backend is not Backend.ENSEMBLE:
        what = f"`ensemble_scheduling` of the {about.part}, which is no ensemble"
        yield Fault(what, ("ensemble_scheduling",), "leave it out", at_key=True)
    elif scheduled and any(field in scheduled for field in _STEPS):
        what = "`ensemble_scheduling.step` is how the package fits together"
        hint = "leave it out; package.triton.tokenizer: false leaves the tokenizer out"
        yield Fault(what, ("ensemble_scheduling", "step"), hint, at_key=True)


def _files(said: Said) -> Iterator[Fault]:
    for field, names in (
        ("cc_model_filenames", list(said.get("cc_model_filenames", {}).values())),
        ("model_operations", said.get("model_operations", {}).get("op_library_filename", [])),
    ):
        if names:
            what = f"`{field}` names a file that the package does not have: {names[0]!r}"
            yield Fault(what, (field,), "leave it out", at_key=True)


def _versions(said: Said) -> Iterator[Fault]:
    policy = said["version_policy"]
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
