"""The config.pbtxt of a published model: which versions Triton loads, and what is published there."""

# All versions of a model share one config.pbtxt. A published one lists the versions to load (`version_policy:
# specific`), so that a version whose files are still being written is never loaded. The entry, which clients call,
# serves one version. The models behind the entry serve the entry's version and the one before, so that the entry finds
# its models at every moment of the change (ADR 54).

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import UsageError
from engine.kit.triton import config as configs
from engine.kit.triton.config import Config
from engine.publishing.package import PackageContent, PublishedModel, warmup_name

_PACKAGE = "recipe_package"
_OWN = (_PACKAGE, "recipe_version", "recipe_key", "recipe_sha256", "recipe_name")
"""The parameters that say what a configuration serves."""
_CALLED = ("max_batch_size", "input", "output", "model_transaction_policy", "sequence_batching")
"""The fields that a client of the entry notices."""
_FREE = ("version_policy", "parameters", "instance_group", "dynamic_batching", "response_cache", "metric_tags")
"""The fields that may differ between two versions that one config.pbtxt serves."""


def text(model: PublishedModel, package: PackageContent, version: int, versions: tuple[int, ...]) -> str:
    """Return the config.pbtxt with which Triton loads `versions` of a model; the newest one is `version`."""
    config = _copy(model.config)
    config.ClearField("version_policy")
    config.version_policy.specific.versions.extend(versions)
    inside = {each.name for each in package.models}
    for step in config.ensemble_scheduling.step:
        if step.model_name in inside:
            step.model_version = version
    for sample in config.model_warmup:
        for each in sample.inputs.values():
            if each.input_data_file:
                file = model.files[f"warmup/{each.input_data_file}"]
                each.input_data_file = warmup_name(file, each.input_data_file)
    facts = (package.name, str(version), package.key, package.sha256, package.recipe)
    for name, value in zip(_OWN, facts, strict=True):
        config.parameters[name].string_value = value
    return configs.as_text(config)


def parsed(data: bytes) -> Config:
    """Return a published configuration, without fields that are not known here. Raises ValueError."""
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    try:
        return text_format.Parse(data.decode(), model_config_pb2.ModelConfig(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise ValueError(str(error)) from error


def versions(config: Config) -> tuple[int, ...]:
    """Return the versions that a published configuration serves."""
    return tuple(config.version_policy.specific.versions)


def current(package: str, published: Mapping[str, Config]) -> int | None:
    """Return the version of a package that its entry serves, or None."""
    entry = published.get(package)
    listed = versions(entry) if entry is not None else ()
    return max(listed, default=None)


def refuse(package: PackageContent, published: Mapping[str, Config], where: str) -> None:
    """Raise UsageError where a model of the package cannot have the next version of what is published there."""
    for model in package.models:
        config = published.get(model.name)
        if config is None:
            continue
        owner = config.parameters[_PACKAGE].string_value if _PACKAGE in config.parameters else ""
        if owner != package.name:
            whose = f"it belongs to the package {owner}" if owner else "`recipe publish` did not write it"
            raise UsageError(
                f"{where}/{model.name} is there already, and {whose}",
                hint="choose another package.triton.name (and package.triton.ensemble, if set), or another URL",
            )
    differing = [
        f"{model.name}: {field}"
        for model in package.models
        if model.name in published
        for field in _differences(model.config, published[model.name], entry=model is package.entry)
    ]
    if differing:
        raise UsageError(
            f"{package.name} cannot be the next version in {where}: all versions share one config.pbtxt,"
            " and fields that older versions or clients rely on differ",
            differing,
            "publish it to another URL, or build it with another name (--set package.triton.name=NAME)",
        )


def _differences(new: Config, old: Config, *, entry: bool) -> list[str]:
    """Return the fields in which two configurations of a model differ so that they cannot share one name."""
    new, old = _bare(new), _bare(old)
    names = _CALLED if entry else tuple(each.name for each in new.DESCRIPTOR.fields if each.name not in _FREE)
    differing = [name for name in names if _value(new, name) != _value(old, name)]
    profiles = [[list(each.profile) for each in config.instance_group] for config in (new, old)]
    return differing if entry or profiles[0] == profiles[1] else [*differing, "instance_group.profile"]


def _value(config: Config, name: str) -> Any:
    """Return a comparable value of a field. Tensors are compared by name: their order has no meaning for clients."""
    value = getattr(config, name)
    if name in ("input", "output"):
        return {each.name: each.SerializeToString(deterministic=True) for each in value}
    return value


def _bare(config: Config) -> Config:
    """Return a configuration without what publishing itself changes."""
    bare = _copy(config)
    for step in bare.ensemble_scheduling.step:
        step.model_version = -1
    for sample in bare.model_warmup:
        for each in sample.inputs.values():
            if each.input_data_file:
                each.input_data_file = "file"
    return bare


def _copy(config: Config) -> Config:
    return type(config).FromString(config.SerializeToString())
