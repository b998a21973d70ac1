"""Versions of installed distributions, also of several with one import package, and the newest that were tested."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from engine.facts import Known
from engine.system import regular
from engine.text import versions

MISSING = "not installed"

_ALTERNATIVES = (
    ("onnxruntime", "onnxruntime-gpu"),
    ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    ("tensorrt_rtx", "tensorrt-rtx-cu13", "tensorrt-rtx-cu12"),
)
_STAND_INS = {name: others for name, *others in _ALTERNATIVES}
"""A mapping from a distribution to the other distributions that provide the same import package.

If several distributions that provide one import package are installed, the distribution that was installed last has
overwritten the files of the others.
"""
_SELF_DESCRIPTION = ("capi", "build_and_package_info.py")
"""The file of an installed ONNX Runtime that names its distribution, for example `onnxruntime-gpu`."""
_versions: dict[str, str] = {}
NEWEST = {
    "huggingface-hub": "2.4.0",
    "nncf": "3.4.0",
    "numpy": "2.4.6",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "onnxruntime": "1.32.0",
    "onnxscript": "0.7.2",
    "openvino": "2026.4.1",
    "polygraphy": "0.53.6",
    "ray": "2.60.0",
    "safetensors": "0.8.0",
    "sentencepiece": "0.2.2",
    "tensorrt_rtx": "1.7.1.116",
    "timm": "1.0.31",
    "tokenizers": "0.23.3",
    "torch": "2.13.0",
    "torchvision": "0.28.0",
    "transformers": "5.24.0",
    "tritonclient": "2.73.0",
}
"""Library -> the newest version with which the fast tests passed.

`.ci/nightly highest` tries the newest versions that the extras allow, and fails for a version that is newer than here.
"""


def known(distribution: str) -> Known:
    """Return what `version_of` returns as a fact, with the files that the version was read from.

    An up-to-date build watches the folders of the import path, so it notices a distribution that is installed later.
    """
    return Known(version_of(distribution), _behind(distribution))


def build(distribution: str) -> Known:
    """Return the name of an import package's distribution, or MISSING, with the files that the name depends on."""
    provider = _distribution(distribution)
    return Known(MISSING if provider is None else str(provider.metadata["Name"]), _behind(distribution))


def version_of(distribution: str) -> str:
    """Return the installed version of a distribution, or else of its alternative; MISSING if neither is installed.

    The version of a distribution is looked up once and then remembered, until `look_again`.
    """
    if distribution not in _versions:
        _versions[distribution] = _installed(distribution)
    return _versions[distribution]


def changed() -> bool:
    """Say whether an installation has changed a version since `version_of` returned it."""
    return any(_installed(name) != version for name, version in _versions.items())


def look_again() -> None:
    """Forget all versions: a process that lives for days looks again before it vouches for them."""
    _versions.clear()
    _behind.cache_clear()


def _installed(distribution: str) -> str:
    provider = _distribution(distribution)
    return MISSING if provider is None else provider.version


def provider(distribution: str) -> metadata.Distribution | None:
    """Return the installed distribution that provides an import package, or None."""
    return _distribution(distribution)


def in_the_way(distribution: str) -> str | None:
    """Return the installed distribution that has the same import package as one that is not installed, or None.

    Both together would overwrite each other's files.
    """
    group = next((group for group in _ALTERNATIVES if distribution in group[1:]), ())
    return next((other for other in group if other != distribution and _described(other)), None)


@cache
def _behind(distribution: str) -> tuple[str, ...]:
    """Return the files that hold the name and the version of the distribution that provides an import package."""
    candidates = [_metadata_file(each) for each in _candidates(distribution)]
    described = [str(Path(folder, *_SELF_DESCRIPTION)) for folder in _folders(distribution)] if candidates[1:] else []
    return (*filter(None, candidates), *described)


def _metadata_file(provider: metadata.Distribution) -> str | None:
    path = Path(str(getattr(provider, "_path", ""))) / "METADATA"
    return str(path) if path.is_file() else None


def _candidates(name: str) -> list[metadata.Distribution]:
    distributions: list[metadata.Distribution] = []
    for candidate in (name, *_STAND_INS.get(name, ())):
        distributions += _described(candidate)[:1]
    return distributions


def _described(name: str) -> list[metadata.Distribution]:
    """Return the descriptions of a distribution in the first folder of the import path that has one, the best first.

    An interrupted installation leaves two descriptions, of which one lists files that do not exist any more.
    """
    every = list(metadata.distributions(name=name))
    beside = [each for each in every if _folder(each) == _folder(every[0])]
    return sorted(beside, key=lambda each: (-_fitting(each), each.version)) if beside[1:] else beside


def _folder(distribution: metadata.Distribution) -> str:
    return os.path.dirname(str(getattr(distribution, "_path", "")))


def _fitting(distribution: metadata.Distribution) -> int:
    """Return the number of the files of a distribution that exist with the size that its list RECORD has for them."""
    sizes = ((file.locate(), file.size) for file in distribution.files or () if file.size is not None)
    return sum(os.path.isfile(path) and os.path.getsize(path) == size for path, size in sizes)


def _distribution(name: str) -> metadata.Distribution | None:
    """Return the metadata of the distribution that provides an import package; None if no distribution does.

    If several installed distributions provide the import package, the name in the package's own files decides.
    """
    candidates = _candidates(name)
    if len(candidates) > 1:
        own = _own_name(name)
        candidates.sort(key=lambda distribution: distribution.metadata["Name"] != own)
    return candidates[0] if candidates else None


def _own_name(module: str) -> str | None:
    """Return the name of the distribution from an import package's own files, without importing the package."""
    for folder in _folders(module):
        with contextlib.suppress(OSError):
            match = re.search(r"package_name = '([\w-]+)'", regular.read_text(Path(folder, *_SELF_DESCRIPTION)))
            if match:
                return match[1]
    return None


def _folders(module: str) -> list[str]:
    spec = importlib.util.find_spec(module)
    return list(spec.submodule_search_locations or ()) if spec else []


def newer(libraries: Iterable[str] = NEWEST) -> list[str]:
    """Return a sentence for each of the libraries that is installed in a newer version than was ever tried."""
    return [
        f"{name} {version} is newer than {NEWEST[name]}, the last version that was tried"
        for name in sorted(NEWEST.keys() & libraries)
        if versions.is_later(version := version_of(name).partition("+")[0], than=NEWEST[name])
    ]
