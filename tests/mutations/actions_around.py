"""What mutations do around a project: the call, the environment, the machine, installed tools."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import fake_wheels
from mutations.mutation import Action
from mutations.workplace import Workplace


def say(*options: str) -> Action:
    """Add options to the command line of `build` and `why`."""
    return lambda place: place.options.extend(options)


def build_with(*options: str) -> Action:
    """Add options to the command line of `build` alone."""
    return lambda place: place.only_build.extend(options)


def variable(**values: str | None) -> Action:
    """Set environment variables; None takes one away. `{folder}` stands for the project's."""

    def act(place: Workplace) -> None:
        for name, value in values.items():
            place.environment.pop(name, None)
            if value is not None:
                place.environment[name] = value.replace("{folder}", str(place.folder))

    return act


def new_folder(name: str) -> Action:
    """Make an empty folder."""
    return lambda place: place.path(name).mkdir(parents=True)


def umask(bits: int) -> Action:
    """Let new files have other permissions."""

    def act(place: Workplace) -> None:
        place.umask = bits

    return act


def from_folder(name: str, recipe: str) -> Action:
    """Call the program from another folder; `{folder}` in the recipe's path stands for the project's."""

    def act(place: Workplace) -> None:
        place.path(name).mkdir(exist_ok=True)
        place.start = place.path(name)
        place.recipe = recipe.replace("{folder}", str(place.folder))

    return act


def named(recipe: str) -> Action:
    """Build a recipe of another name."""

    def act(place: Workplace) -> None:
        place.recipe = recipe

    return act


def elsewhere(place: Workplace) -> None:
    """Take the whole project to another path, and go on there."""
    other = place.folder.parent / "another place" / "with more folders" / place.folder.name
    shutil.copytree(place.folder, other, symlinks=True)
    place.environment = {k: v.replace(str(place.folder), str(other)) for k, v in place.environment.items()}
    place.folder = other


def moved(place: Workplace) -> None:
    """Rename the project's folder, and go on there."""
    other = place.folder.with_name("renamed")
    place.folder.rename(other)
    place.environment = {k: v.replace(str(place.folder), str(other)) for k, v in place.environment.items()}
    place.folder = other


def tool(name: str, version: str = "9.9") -> Action:
    """Let a package seem to be installed in another version; the module that is imported stays."""

    def act(place: Workplace) -> None:
        site = place.folder.parent / "tools"
        distribution(site, name, version)
        if str(site) not in place.environment.get("PYTHONPATH", "").split(os.pathsep):
            place.put_first(site)

    return act


def untool(place: Workplace) -> None:
    """Let all packages be installed as they are."""
    shutil.rmtree(place.folder.parent / "tools")


def distribution(site: Path, name: str, version: str) -> None:
    """Write the metadata of an installed package, whose RECORD lists no module."""
    fake_wheels.install(site, name, version, {})


def tool_copy(name: str, *packages: str, into: str = "tools") -> Action:
    """Put a copy of an installed tool first on the import path: its metadata, and these of its packages."""

    def act(place: Workplace) -> None:
        site = place.folder.parent / into
        info = Path(str(metadata.distribution(name)._path))
        for folder in (info.name, *packages):
            shutil.copytree(info.parent / folder, site / folder, ignore=shutil.ignore_patterns("__pycache__"))
        place.put_first(site)

    return act


def in_tool(name: str, change: Callable[[Path], object]) -> Action:
    """Change a file or folder of a tool's copy."""
    return lambda place: change(place.folder.parent / "tools" / name) and None


def patched(path: Path) -> None:
    """Change a comment of a module in place; its size and its modification time stay."""
    before = path.stat()
    text = path.read_text()
    assert "# Copyright" in text
    path.write_text(text.replace("# Copyright", "# copyRight", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def gpu(name: str, capability: str, driver: str) -> Action:
    """Let `nvidia-smi` tell of a GPU; a later one takes the place of an earlier."""

    def act(place: Workplace) -> None:
        programs = place.folder.parent / "programs"
        programs.mkdir(exist_ok=True)
        program = programs / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{name}, {capability}, {driver}'\n")
        program.chmod(0o755)
        place.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"

    return act


def cpus(numbers: str) -> Action:
    """Let the program run on some of the CPUs alone."""
    return lambda place: place.prefix.extend(["taskset", "-c", numbers])


def architecture(name: str) -> Action:
    """Let the kernel say that it is of another architecture."""
    return lambda place: place.prefix.extend(["setarch", name])


def cpuinfo(old: str, new: str) -> Action:
    """Let /proc/cpuinfo tell of another CPU, in a mount namespace of the command's own."""

    def act(place: Workplace) -> None:
        text = Path("/proc/cpuinfo").read_text()
        assert old in text, f"{old!r} is not in /proc/cpuinfo"
        fake = place.folder.parent / "cpuinfo"
        fake.write_text((fake.read_text() if fake.exists() else text).replace(old, new))
        mount = 'mount --bind "$0" /proc/cpuinfo && exec "$@"'
        place.prefix = ["unshare", "-m", "sh", "-c", mount, str(fake)]

    return act


def without_flag(flag: str) -> Action:
    """Let /proc/cpuinfo tell of a CPU that lacks a feature."""
    return cpuinfo(f" {flag} ", " ")


def built(place: Workplace) -> None:
    """Build, in the middle of a mutation."""
    run = place.build()
    assert run.code == 0, run.talk
