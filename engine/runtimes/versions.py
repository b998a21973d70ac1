"""Versions: as recipes write them ("10.x", "10.9") and as distributions have them ("10.9.0.34")."""

from __future__ import annotations

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
    """Return the numbers of a version, without parts that are text: `10.9.0.post1` -> (10, 9, 0)."""
    return tuple(int(part) for part in parts(version.partition(_CONTENT)[0]) if part.isdigit())


def agrees(requested: str, version: str) -> bool:
    """Tell whether `version` is a version that a recipe requests ("10.x", "10.9", "10.9.0.34").

    Two versions are compared only in the parts that both versions have, so "10.9.0.34" and "10.9" agree.
    """
    fixed, actual = parts(requested), tuple(version.partition(_CONTENT)[0].split("."))
    return actual[: len(fixed)] == fixed[: len(actual)]


def requirement(distribution: str, requested: str | None) -> str:
    """Return what pip installs for a requested version: `tensorrt`, "10.x" -> `"tensorrt==10.*"`, quoted for shells.

    A version of fewer than four numbers may stand for several releases of TensorRT, so the rest is left open.
    """
    fixed = parts(requested or "")
    if not fixed:
        return distribution
    return f'"{distribution}=={".".join(fixed)}{".*" if len(fixed) < _WHOLE else ""}"'


def is_later(version: str, *, than: str) -> bool:
    """Tell whether a version is later than another; only as many numbers are compared as both versions have."""
    one, other = numbers(version), numbers(than)
    common = min(len(one), len(other))
    return one[:common] > other[:common]


def loads_engine(tensorrt: str, *, built_by: str, version_compatible: bool) -> bool:
    """Tell whether a TensorRT version loads an engine that another TensorRT version built.

    An engine runs with the version of TensorRT that built it. A version-compatible engine also runs with later versions
    of TensorRT that have the same major number. Source: "Engine Compatibility" in NVIDIA's TensorRT documentation.
    """
    if agrees(built_by, tensorrt):
        return True
    same_major = parts(tensorrt)[:1] == parts(built_by)[:1]
    return version_compatible and same_major and not is_later(built_by, than=tensorrt)
