"""What a model repository asks of its server, read from its own files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import StepError
from engine.runtimes import registry
from engine.runtimes.backends import Backend

CONFIG, REQUIREMENTS = "config.pbtxt", "requirements.txt"
_PLATFORMS = {**{each.platform: each.backend for each in Backend if each.platform}, "pytorch_libtorch": "pytorch"}


@dataclass(frozen=True)
class Engine:
    """A TensorRT engine of a repository: the version that built it, and whether later ones load it, too."""

    model: str
    tensorrt: str
    version_compatible: bool = False


@dataclass(frozen=True)
class Needs:
    """What the models of a repository need, all together."""

    models: tuple[str, ...] = ()
    backends: frozenset[str] = frozenset()
    gpu: tuple[str, ...] = ()
    """The models that run on a GPU alone."""
    engines: tuple[Engine, ...] = ()
    requirements: Mapping[str, str] = field(default_factory=dict)
    """What the python backend needs, as pip takes it -> the model that says so."""
    cached: tuple[str, ...] = ()
    """The models whose answers are to be kept in the server's cache."""


def needs_of(repository: Path) -> Needs:
    """Return what the models in a repository need. Raises StepError where one of them cannot be read."""
    configs = {folder.name: _config(folder) for folder in sorted(repository.iterdir()) if (folder / CONFIG).is_file()}
    return Needs(
        models=tuple(configs),
        backends=frozenset(backend for config in configs.values() if (backend := _backend(config))),
        gpu=tuple(name for name, config in configs.items() if _on_gpu(config)),
        engines=tuple(_engine(repository / name) for name, config in configs.items() if _is_engine(config)),
        requirements={line: name for name in configs for line in _requirements(repository / name)},
        cached=tuple(name for name, config in configs.items() if config.response_cache.enable),
    )


def _config(folder: Path) -> Any:
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    try:
        text = (folder / CONFIG).read_text("utf-8")
        return text_format.Parse(text, model_config_pb2.ModelConfig(), allow_unknown_field=True)
    except (OSError, ValueError, text_format.ParseError) as error:
        raise StepError(f"{folder / CONFIG} cannot be read", [str(error)], "build the package again") from error


def _backend(config: Any) -> str:
    return str(config.backend) or _PLATFORMS.get(config.platform, str(config.platform))


def _is_engine(config: Any) -> bool:
    return _backend(config) == Backend.TENSORRT.backend


def _on_gpu(config: Any) -> bool:
    groups = config.instance_group
    return _is_engine(config) or any(group.kind == group.KIND_GPU for group in groups)


def _engine(folder: Path) -> Engine:
    runtimes = (each for each in registry.runtimes().values() if each.backend is Backend.TENSORRT)
    version, compatible = next(each for each in runtimes if each.loads_in_triton).built_by(folder)
    return Engine(folder.name, version, compatible)


def _requirements(folder: Path) -> list[str]:
    try:
        lines = (folder / REQUIREMENTS).read_text("utf-8").splitlines()
    except OSError:
        return []
    return [line for each in lines if (line := each.partition("#")[0].strip())]
