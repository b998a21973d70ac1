"""A package as it is published: its models, files and SHA-256, and the manifest of each published version."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.errors import StepError, UsageError
from engine.kit.triton import config as configs
from engine.kit.triton import parts
from engine.kit.triton.config import Config
from engine.recipe.model_config import MODEL_VERSION
from engine.runtimes.backends import Backend
from engine.store import releases
from engine.store.remote.objects import Entry

_BUILT = str(MODEL_VERSION)
_WARMUP = "warmup"
_SHORT = 12
"""Hexadecimal digits of a digest that name a warm-up's file."""
_PIECE = 1 << 20
_NAME = re.compile(r"\.recipe\.(?P<package>.+)\.(?P<version>[1-9][0-9]*)(?P<claim>\.claim)?\.json")
MOST_BYTES = 64 << 20
"""The largest manifest, in bytes, that is read."""
_LATEST = 1e11
"""The latest possible time of a decision, in seconds since the epoch."""


@dataclass(frozen=True)
class PackageFile:
    """A file of the package: where it is, its bytes, and their SHA-256 in hexadecimal digits."""

    path: Path
    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> PackageFile:
        """Read a file. Raises OSError."""
        digest, size = hashlib.sha256(), 0
        with path.open("rb") as stream:
            while piece := stream.read(_PIECE):
                digest.update(piece)
                size += len(piece)
        return cls(path, size, digest.hexdigest())


@dataclass(frozen=True)
class PublishedModel:
    """A model of the package; `files` are named below the model's folder, without config.pbtxt."""

    name: str
    config: Config
    files: Mapping[str, PackageFile]

    @property
    def started_by(self) -> str:
        """The name of the file that makes a version's folder loadable; empty for an ensemble."""
        backend = Backend.of(platform=self.config.platform, backend=self.config.backend)
        return str(self.config.default_model_filename or backend.file)

    def placed(self, version: int) -> dict[str, PackageFile]:
        """Return the files by their names in the repository.

        Files of the built version, and requirements.txt, lie in the folder of the new version. A warm-up's data lies
        beside the versions, which share the folder; the file's digest in its name keeps warm-ups of versions apart.
        """
        named: dict[str, PackageFile] = {}
        for name, file in self.files.items():
            folder, _, rest = name.partition("/")
            if folder == _BUILT:
                place = f"{version}/{rest}"
            elif folder == _WARMUP:
                place = f"{_WARMUP}/{warmup_name(file, rest)}"
            elif name == parts.REQUIREMENTS:
                place = f"{version}/{name}"
            else:
                raise UsageError(
                    f"{self.name}/{name} cannot be published: all versions of a model would share it",
                    hint="build the package again with this version of recipe",
                )
            named[f"{self.name}/{place}"] = file
        return named


@dataclass(frozen=True)
class PackageContent:
    """A package: the recipe's name, the digest of the job's key, the models, and the model that clients call."""

    recipe: str
    key: str
    models: tuple[PublishedModel, ...]
    entry: PublishedModel
    config_digests: Mapping[str, str]
    """The name of each config.pbtxt in the package -> its SHA-256."""

    @property
    def name(self) -> str:
        """The name of the model that clients call, which is the package's name in a repository."""
        return self.entry.name

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the lines that `sha256sum` prints for the package's files, sorted by name as bytes."""
        digests = dict(self.config_digests)
        for model in self.models:
            digests |= {f"{model.name}/{name}": file.sha256 for name, file in model.files.items()}
        return releases.sha256_of(digests)


def warmup_name(file: PackageFile, name: str) -> str:
    """Return the name of a warm-up's data in a published model."""
    return f"{file.sha256[:_SHORT]}-{name}"


def read(folder: Path, *, recipe: str, key: str) -> PackageContent:
    """Read a built package. Raises StepError for a package that Triton cannot load, UsageError for other faults."""
    models: list[PublishedModel] = []
    config_digests: dict[str, str] = {}
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        if not (place / configs.FILE).is_file():
            raise StepError(f"{recipe}: {place.name} is no model of Triton: Triton has no backend that runs it")
        files = {
            path.relative_to(place).as_posix(): PackageFile.of(path)
            for path in sorted(place.rglob("*"))
            if path.is_file() and path.relative_to(place).as_posix() != configs.FILE
        }
        config_digests[f"{place.name}/{configs.FILE}"] = PackageFile.of(place / configs.FILE).sha256
        config = configs.read(place)
        _refuse_policy(recipe, place.name, config)
        models.append(PublishedModel(place.name, config, files))
    if not models:
        raise StepError(f"{recipe}: the package {folder} has no models", hint="build it again")
    for model in models:
        model.placed(MODEL_VERSION)  # what cannot be published is refused before anything is written
    return PackageContent(recipe, key, tuple(models), _entry(recipe, models), config_digests)


def _refuse_policy(recipe: str, name: str, config: Any) -> None:
    policy = config.version_policy
    if config.HasField("version_policy") and not (policy.HasField("latest") and policy.latest.num_versions == 1):
        raise UsageError(
            f"{recipe}: the model {name} sets version_policy, which `recipe publish` sets itself",
            ["a version is loaded only when config.pbtxt lists it, so that no half version is ever loaded"],
            "remove version_policy from package.triton of the recipe",
        )


def _entry(recipe: str, models: list[PublishedModel]) -> PublishedModel:
    marked = [model for model in models if parts.TASK in model.config.parameters]
    chosen = marked if len(models) > 1 else models
    if len(chosen) != 1:
        names = ", ".join(model.name for model in (marked or models))
        raise UsageError(f"{recipe}: which model do clients call: {names}?", hint=f"one has the parameter {parts.TASK}")
    return chosen[0]


# `.recipe.NAME.7.claim.json` says that a publisher has taken the number 7. `.recipe.NAME.7.json` decides about version
# 7: complete, with the digests of all files, or abandoned. It is created, never overwritten: the first decision holds.


@dataclass(frozen=True)
class Manifest:
    """The decision about a version. `files` maps each name in the repository to its size and SHA-256."""

    package: str
    version: int
    complete: bool
    recipe: str = ""
    key: str = ""
    sha256: str = ""
    when: float = 0.0
    """When the decision was made: seconds since the epoch."""
    models: tuple[str, ...] = ()
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(size for size, _ in self.files.values())

    def to_bytes(self) -> bytes:
        """Return the manifest's text."""
        fields = {
            "package": self.package, "version": self.version, "state": "complete" if self.complete else "abandoned",
            "recipe": self.recipe, "key": self.key, "sha256": self.sha256, "when": self.when, "models": self.models,
            "files": {name: {"bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()},
        }  # fmt: skip
        return (json.dumps(fields, ensure_ascii=False, indent=1) + "\n").encode()

    @classmethod
    def of_bytes(cls, data: bytes, package: str, version: int) -> Manifest:
        """Read the manifest of a version. Raises ValueError for a text that is none, or that of another version."""
        try:
            fields: Any = json.loads(data)
            files = {str(name): (int(each["bytes"]), str(each["sha256"])) for name, each in fields["files"].items()}
            texts = {name: str(fields[name]) for name in ("package", "recipe", "key", "sha256")}
            if (texts["package"], fields["version"]) != (package, version) or not 0 <= float(fields["when"]) <= _LATEST:
                raise ValueError("it is the manifest of another version, or has no possible time")
            return cls(
                version=version, complete=fields["state"] == "complete", when=float(fields["when"]),
                models=tuple(map(str, fields["models"])), files=files, **texts,
            )  # fmt: skip
        except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(f"no manifest of a published version: {error}") from None


def manifest_of(package: PackageContent, version: int, when: float) -> Manifest:
    """Return the manifest of a package as a complete version."""
    files = {name: (file.size, file.sha256) for model in package.models for name, file in model.placed(version).items()}
    names = tuple(model.name for model in package.models)
    return Manifest(
        package.name, version, complete=True, recipe=package.recipe, key=package.key, sha256=package.sha256, when=when,
        models=names, files=files,
    )  # fmt: skip


def manifest_name(package: str, version: int) -> str:
    """Return the name of the decision about a version."""
    return f".recipe.{package}.{version}.json"


def claim_name(package: str, version: int) -> str:
    """Return the name of the claim of a number."""
    return f".recipe.{package}.{version}.claim.json"


@dataclass(frozen=True)
class Listing:
    """The objects of a repository, by name."""

    entries: Mapping[str, Entry]

    def decided(self) -> list[tuple[str, int]]:
        """Return the package and the version of each decision, in order."""
        return self._matching(claims=False)

    def claimed(self) -> list[tuple[str, int]]:
        """Return the package and the version of each claim, in order."""
        return self._matching(claims=True)

    def numbers(self, package: str, models: tuple[str, ...]) -> set[int]:
        """Return the numbers that are taken in any model of a package: by a file, a claim or a decision."""
        taken = {version for owner, version in (*self.decided(), *self.claimed()) if owner == package}
        for entry in self.entries:
            model, _, rest = entry.partition("/")
            version = rest.partition("/")[0]
            if model in models and version.isascii() and version.isdigit():
                taken.add(int(version))
        return taken

    def lacks(self, manifest: Manifest) -> list[str]:
        """Return the files of a version that are missing or have another size."""
        return [
            name
            for name, (size, _) in manifest.files.items()
            if name not in self.entries or self.entries[name].size != size
        ]

    def _matching(self, *, claims: bool) -> list[tuple[str, int]]:
        matches = (_NAME.fullmatch(entry) for entry in self.entries)
        return sorted(
            (match["package"], int(match["version"])) for match in matches if match and bool(match["claim"]) is claims
        )
