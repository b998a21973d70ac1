"""What mutations do around a project: the call, the environment, the machine, installed tools, the store, a kill."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import fake_wheels
from mutations.actions import action
from mutations.mutation import Action
from mutations.workplace import Workplace


def say(*options: str) -> Action:
    """Add options to the command line of `build` and `why`."""
    return lambda place: place.options.extend(options)


def build_with(*options: str) -> Action:
    """Add options to the command line of `build` alone."""
    return lambda place: place.only_build.extend(options)


@action
def variable(place: Workplace, **values: str | None) -> None:
    """Set environment variables; None takes one away. `{folder}` stands for the project's."""
    for name, value in values.items():
        place.environment.pop(name, None)
        if value is not None:
            place.environment[name] = value.replace("{folder}", str(place.folder))


@action
def umask(place: Workplace, bits: int) -> None:
    """Let new files have other permissions."""
    place.umask = bits


@action
def from_folder(place: Workplace, name: str, recipe: str) -> None:
    """Call the program from another folder; `{folder}` in the recipe's path stands for the project's."""
    place.path(name).mkdir(exist_ok=True)
    place.start = place.path(name)
    place.recipe = recipe.replace("{folder}", str(place.folder))


@action
def named(place: Workplace, recipe: str) -> None:
    """Build a recipe of another name."""
    place.recipe = recipe


def elsewhere(place: Workplace) -> None:
    """Take the whole project to another path, and go on there."""
    other = place.folder.parent / "another place" / "with more folders" / place.folder.name
    shutil.copytree(place.folder, other, symlinks=True)
    place.environment = {k: v.replace(str(place.folder), str(other)) for k, v in place.environment.items()}
    place.folder = other


@action
def tool(place: Workplace, name: str, version: str = "9.9") -> None:
    """Let a package seem to be installed in another version; the module that is imported stays."""
    site = place.folder.parent / "tools"
    distribution(site, name, version)
    if str(site) not in place.environment.get("PYTHONPATH", "").split(os.pathsep):
        place.put_first(site)


def untool(place: Workplace) -> None:
    """Let all packages be installed as they are."""
    shutil.rmtree(place.folder.parent / "tools")


def distribution(site: Path, name: str, version: str) -> None:
    """Write the metadata of an installed package, whose RECORD lists no module."""
    fake_wheels.install(site, name, version, {})


@action
def tool_copy(place: Workplace, name: str, *packages: str, into: str = "tools") -> None:
    """Put a copy of an installed tool first on the import path: its metadata, and these of its packages."""
    site = place.folder.parent / into
    info = Path(str(metadata.distribution(name)._path))
    for folder in (info.name, *packages):
        shutil.copytree(info.parent / folder, site / folder, ignore=shutil.ignore_patterns("__pycache__"))
    place.put_first(site)


@action
def in_tool(place: Workplace, name: str, change: Callable[[Path], object]) -> None:
    """Change a file or folder of a tool's copy."""
    change(place.folder.parent / "tools" / name)


def patched(path: Path) -> None:
    """Change a comment of a module in place; its size and its modification time stay."""
    before = path.stat()
    text = path.read_text()
    assert "# Copyright" in text
    path.write_text(text.replace("# Copyright", "# copyRight", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@action
def gpu(place: Workplace, name: str, capability: str, driver: str) -> None:
    """Let `nvidia-smi` tell of a GPU; a later one takes the place of an earlier."""
    programs = place.folder.parent / "programs"
    programs.mkdir(exist_ok=True)
    program = programs / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{name}, {capability}, {driver}'\n")
    program.chmod(0o755)
    place.environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"


def cpus(numbers: str) -> Action:
    """Let the program run on some of the CPUs alone."""
    return lambda place: place.prefix.extend(["taskset", "-c", numbers])


def architecture(name: str) -> Action:
    """Let the kernel say that it is of another architecture."""
    return lambda place: place.prefix.extend(["setarch", name])


@action
def cpuinfo(place: Workplace, old: str, new: str) -> None:
    """Let /proc/cpuinfo tell of another CPU, in a mount namespace of the command's own."""
    text = Path("/proc/cpuinfo").read_text()
    assert old in text, f"{old!r} is not in /proc/cpuinfo"
    fake = place.folder.parent / "cpuinfo"
    fake.write_text((fake.read_text() if fake.exists() else text).replace(old, new))
    mount = 'mount --bind "$0" /proc/cpuinfo && exec "$@"'
    place.prefix = ["unshare", "-m", "sh", "-c", mount, str(fake)]


def without_flag(flag: str) -> Action:
    """Let /proc/cpuinfo tell of a CPU that lacks a feature."""
    return cpuinfo(f" {flag} ", " ")


def built(place: Workplace) -> None:
    """Build, in the middle of a mutation."""
    run = place.build()
    assert run.code == 0, run.talk


def answered(place: Workplace) -> None:
    """Build until the snapshot answers, in the middle of a mutation."""
    built(place)
    built(place)


@action
def mapped(place: Workplace, name: str, old: bytes, new: bytes) -> None:
    """Write through a mapping, build, and write to the same page of the same mapping again."""
    assert len(old) == len(new)
    with place.path(name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        at = mapping.find(old)
        assert at >= 0
        mapping[at : at + 1] = mapping[at : at + 1]
        answered(place)
        mapping[at : at + len(new)] = new


def stored(job: str, file: str, act: Callable[[str], Action]) -> Action:
    """Do something to a file of a job's artifact."""
    return lambda place: act(f"{place.ended[job]['path']}/{file}")(place)


def artifact(job: str, act: Callable[[str], Action]) -> Action:
    """Do something to the whole artifact of a job."""
    return lambda place: act(place.ended[job]["path"])(place)


def record(job: str, act: Callable[[str], Action]) -> Action:
    """Do something to the record of a job."""
    return lambda place: act(f"cache/records/{place.ended[job]['key']}.json")(place)


@action
def killed(place: Workplace, *options: str, at: str) -> None:
    """Begin a build, and kill it with all that it started once a job has begun."""
    words = [sys.executable, "-m", "engine", "build", place.recipe, *place.options, *options, "--json"]
    running = subprocess.Popen(
        words, cwd=place.folder, env=place.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, start_new_session=True,
    )  # fmt: skip
    assert running.stdout is not None
    for line in running.stdout:
        event = json.loads(line)
        if event["event"] == "start" and event["job"] == at:
            break
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    running.stdout.close()
