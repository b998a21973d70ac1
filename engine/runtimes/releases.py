"""Releases: the versions of TensorRT that pip can install, for hints that name only versions that exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.text.versions import agrees, is_whole, numbers, parts

SOURCES: Mapping[str, str] = {
    "tensorrt": "https://pypi.org/project/tensorrt/#history",
    "tensorrt-rtx-cu12": "https://pypi.org/project/tensorrt-rtx-cu12/#history",
}
"""Distribution -> the page with its releases. Read on 2026-11-23 for Python 3.11 on x86_64 Linux."""

RELEASES: Mapping[str, Sequence[str]] = {
    "tensorrt": (
        "8.6.1", "8.6.1.post1", "10.0.1", "10.1.0", "10.2.0", "10.2.0.post1", "10.3.0", "10.4.0", "10.5.0", "10.6.0",
        "10.6.0.post1", "10.6.0.post2", "10.7.0", "10.7.0.post1", "10.8.0.43", "10.9.0.34", "10.10.0.31", "10.11.0.33",
        "10.12.0.36", "10.13.0.35", "10.13.2.6", "10.13.3.9", "10.13.3.9.post1", "10.14.1.48", "10.14.1.48.post1",
        "10.15.1.29", "10.16.0.72", "10.16.1.11", "11.0.0.114", "11.1.0.106", "11.2.1.2", "11.3.0.99", "11.4.0.106",
    ),
    "tensorrt-rtx-cu12": ("1.4.0.76", "1.5.0.114", "1.6.1.120", "1.7.1.116"),
}  # fmt: skip
"""Distribution -> its releases, the earliest first."""


def released(distribution: str, requested: str) -> tuple[str, ...]:
    """Return the releases of a distribution that agree with a requested version, the earliest first."""
    return tuple(release for release in RELEASES.get(distribution, ()) if agrees(requested, release))


def exists(distribution: str, requested: str | None) -> bool:
    """Tell whether pip has a release that agrees with a requested version; True for a package without a list."""
    return requested is None or distribution not in RELEASES or bool(released(distribution, requested))


def nearest(distribution: str, requested: str) -> str:
    """Return the version to write in a recipe: `requested` if releases begin with it, else the nearest release.

    An image may have a build that pip's version does not say: 10.0.1.6 is the release "10.0.1".
    """
    releases = RELEASES.get(distribution, ())
    fixed = numbers(requested)
    if not releases or any(numbers(release)[: len(fixed)] == fixed for release in releases):
        return requested
    return (released(distribution, requested) or _by_distance(releases, fixed))[0]


def requirement(distribution: str, requested: str | None) -> str:
    """Return what pip installs for a requested version: `tensorrt`, "10.x" -> `"tensorrt==10.*"`, quoted for shells.

    The result names a release in the table `RELEASES`: the nearest one where no release agrees with `requested`. A
    version of fewer than four numbers may stand for several releases, so the rest is left open.
    """
    if not parts(requested or ""):
        return distribution
    version = nearest(distribution, requested or "")
    is_open = not is_whole(version) and version not in RELEASES.get(distribution, ())
    return f'"{distribution}=={".".join(parts(version))}{".*" if is_open else ""}"'


def _by_distance(releases: Sequence[str], fixed: tuple[int, ...]) -> list[str]:
    """Return the releases, the nearest to the numbers in `fixed` first: by major, then by minor, and so on."""
    return sorted(
        releases, key=lambda release: tuple(abs(a - b) for a, b in zip(fixed, numbers(release), strict=False))
    )
