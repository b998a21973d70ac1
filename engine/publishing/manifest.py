"""What a repository keeps about published versions: files in its root, where Triton looks at folders only."""

# `.recipe.NAME.7.claim.json` says that a publisher has taken the number 7. `.recipe.NAME.7.json` decides about version
# 7: complete, with the digests of all files, or abandoned. It is created, never overwritten: the first decision holds.

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.publishing.package import PackageContent
from engine.store.remote.objects import Entry

_NAME = re.compile(r"\.recipe\.(?P<package>.+)\.(?P<version>[1-9][0-9]*)(?P<claim>\.claim)?\.json")
MOST = 64 << 20
"""The largest manifest, in bytes, that is read."""
_LATEST = 1e11
"""The latest possible time of a decision, in seconds since the epoch."""


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


def of_package(package: PackageContent, version: int, when: float) -> Manifest:
    """Return the manifest of a package as a complete version."""
    files = {name: (file.size, file.sha256) for model in package.models for name, file in model.placed(version).items()}
    names = tuple(model.name for model in package.models)
    return Manifest(
        package.name, version, complete=True, recipe=package.recipe, key=package.key, sha256=package.sha256, when=when,
        models=names, files=files,
    )  # fmt: skip


def name(package: str, version: int) -> str:
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
