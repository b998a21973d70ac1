"""Versions: as recipes write them ("10.x", "10.9") and as distributions have them ("10.9.0.34")."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

_ANY = ("", "x", "*")
"""Parts of a version in a recipe that stand for any number."""


_CONTENT = " (content: "
_WHOLE = 4
"""How many numbers a version of TensorRT has: major, minor, patch and build."""


def with_content(version: str, content: str) -> str:
    """Return a version with the digest of the code, for code that may differ from what the version promises."""
    return f"{version}{_CONTENT}{content})" if content else version


def is_same_release(one: str, other: str) -> bool:
    """Tell whether two versions differ only in their build, like 2.13.0+cpu and 2.13.0+cu126."""
    return _release(one) == _release(other)


def _release(version: str) -> tuple[str, str]:
    number, _, content = version.partition(_CONTENT)
    return number.partition("+")[0], content


def parts(version: str) -> tuple[str, ...]:
    """Return the parts of a version that stand for one number: `10.x` -> ("10",)."""
    return tuple(part for part in version.split(".") if part not in _ANY)


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: `10.9.0.post1` -> (10, 9, 0), `10.x` -> (10,)."""
    return tuple(_numbers(version.partition(_CONTENT)[0]))


def _numbers(version: str) -> Iterator[int]:
    for part in version.split("."):
        if not part.isdecimal():
            return
        yield int(part)


def is_whole(version: str) -> bool:
    """Tell whether a version has all numbers of a version of TensorRT, the build included."""
    return len(numbers(version)) >= _WHOLE


class VersionMatch(Enum):
    """Whether two versions are of one build, or whether an engine loads.

    A plan loads where major, minor, patch and build are those of its builder ("Engine Compatibility" in NVIDIA's
    TensorRT documentation). Where a version lacks one of the four numbers, nothing but the common numbers is known.
    """

    DIFFERENT = "different"
    NOT_VERIFIED = "not verified"
    SAME = "same"


def compare(one: str, other: str) -> VersionMatch:
    """Return whether two versions are of one build of TensorRT.

    Versions without four numbers that agree in the numbers that both have are not verified. A version without numbers,
    such as that of a missing package, differs from each version with numbers.
    """
    first, second = numbers(one), numbers(other)
    common = min(len(first), len(second), _WHOLE)
    if first[:common] != second[:common] or bool(first) != bool(second):
        return VersionMatch.DIFFERENT
    return VersionMatch.SAME if common == _WHOLE else VersionMatch.NOT_VERIFIED


def agrees(requested: str, version: str) -> bool:
    """Tell whether `version` may be a version that a recipe requests ("10.x", "10.9", "10.9.0.34")."""
    return not parts(requested) or compare(requested, version) is not VersionMatch.DIFFERENT


def is_later(version: str, *, than: str) -> bool:
    """Tell whether a version is later than another; only as many numbers are compared as both versions have."""
    one, other = numbers(version), numbers(than)
    common = min(len(one), len(other))
    return one[:common] > other[:common]


def loading(tensorrt: str, *, built_by: str, version_compatible: bool) -> VersionMatch:
    """Return whether a TensorRT version loads an engine that another TensorRT version built.

    An engine runs with the version of TensorRT that built it, and a version-compatible engine also with later versions.
    Source: "Version Compatibility" in NVIDIA's TensorRT documentation. The documentation of 11.1 says that engines of
    10 work with 11; this program refuses other major numbers, because no such pair was tried.
    """
    same = compare(built_by, tensorrt)
    if same is not VersionMatch.DIFFERENT or not version_compatible:
        return same
    later = numbers(tensorrt)[:1] == numbers(built_by)[:1] and is_later(tensorrt, than=built_by)
    return VersionMatch.SAME if later else VersionMatch.DIFFERENT


def loads_engine(tensorrt: str, *, built_by: str, version_compatible: bool) -> bool:
    """Tell whether a TensorRT version may load an engine: whether `loading` does not refuse it."""
    return loading(tensorrt, built_by=built_by, version_compatible=version_compatible) is not VersionMatch.DIFFERENT
