"""Needs: the parts of a server that the models of a repository need, read from the files of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import StepError
from engine.kit.triton import config as configs
from engine.kit.triton.config import Config
from engine.kit.triton.parts import REQUIREMENTS
from engine.runtimes import registry
from engine.runtimes.backends import Backend

_PLATFORMS = {**{each.platform: each.backend for each in Backend if each.platform}, "pytorch_libtorch": "pytorch"}


@dataclass(frozen=True)
class Engine:
    """A TensorRT engine of a model repository: its TensorRT version, and whether later minor versions load it."""

    model: str
    tensorrt: str
    version_compatible: bool = False
    plugins: tuple[str, ...] = ()
    """The paths, below the model repository, of the libraries with the plugins that the engine needs."""


@dataclass(frozen=True)
class Needs:
    """What the models of a repository need together: backends, GPUs, TensorRT engines, packages, a response cache."""

    models: tuple[str, ...] = ()
    backends: frozenset[str] = frozenset()
    gpu: tuple[str, ...] = ()
    """The names of the models that need a GPU."""
    engines: tuple[Engine, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    """Package of a python model, as in requirements.txt -> the model that needs it."""
    cached: tuple[str, ...] = ()
    """The names of the models whose responses the server keeps in its cache."""


def needs_of(repository: Path) -> Needs:
    """Return the needs of the models in a repository. Raises StepError for a configuration that cannot be read."""
    models = {
        folder.name: _config(folder) for folder in sorted(repository.iterdir()) if (folder / configs.FILE).is_file()
    }
    return Needs(
        models=tuple(models),
        backends=frozenset(map(_backend, models.values())) - {""},
        gpu=tuple(
            name
            for name, config in models.items()
            if _is_engine(config) or any(group.kind == group.KIND_GPU for group in config.instance_group)
        ),
        engines=tuple(_engine(repository / name) for name, config in models.items() if _is_engine(config)),
        requirements={line: name for name in models for line in _requirements(repository / name)},
        cached=tuple(name for name, config in models.items() if config.response_cache.enable),
    )


def _config(folder: Path) -> Config:
    """Return the configuration of a model, which may have fields that only a later Triton knows."""
    try:
        return configs.read(folder, allow_unknown_field=True)
    except (OSError, ValueError) as error:
        raise StepError(f"{folder / configs.FILE} cannot be read", [str(error)], "build the package again") from error


def _backend(config: Config) -> str:
    """Return the name of a model's backend; empty for an ensemble, which has none."""
    return str(config.backend) or _PLATFORMS.get(config.platform, str(config.platform))


def _is_engine(config: Config) -> bool:
    return _backend(config) == Backend.TENSORRT.backend


def _engine(folder: Path) -> Engine:
    builds = registry.find(Backend.TENSORRT.backend)  # Triton's backend has the name of the runtime
    version, compatible, plugins = builds.built_by(folder)
    return Engine(folder.name, version, compatible, tuple(f"{folder.name}/{path}" for path in plugins))


def _requirements(folder: Path) -> list[str]:
    """Return a model's requirements.txt as lines without comments; an empty list without such a file."""
    try:
        lines = (folder / REQUIREMENTS).read_text("utf-8").splitlines()
    except OSError:
        return []
    without_comments = [line.partition("#")[0].strip() for line in lines]
    return [line for line in without_comments if line]
