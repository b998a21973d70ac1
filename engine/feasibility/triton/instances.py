"""Instance groups: how many instances of a model Triton starts, and on which devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, twice
from engine.runtimes.backends import Backend

_GROUPS = "instance_group"


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each instance group that Triton refuses, or whose device differs from the package's device."""
    groups = overrides.get(_GROUPS)
    if groups is None or about.backend is Backend.ENSEMBLE:
        return
    for index, group in enumerate(groups):
        yield from _placed(group, index, about)
        yield from _sized(group, index)
        yield from _profiles(group, index, about)
    if groups and all(group.get("passive") for group in groups):
        yield Fault("all groups are passive: nothing would answer", (_GROUPS, 0, "passive"), "leave one active")


def _placed(group: Mapping[str, Any], index: int, about: About) -> Iterator[Fault]:
    kind, at = group.get("kind", "KIND_AUTO"), (_GROUPS, index, "kind")
    if not about.on_gpu and kind == "KIND_GPU":
        what = "KIND_GPU: this package is for a cpu, and Triton would look for a GPU"
        yield Fault(what, at, "use KIND_CPU, or leave the group out")
    if about.on_gpu and about.backend is not Backend.PYTHON and kind in ("KIND_CPU", "KIND_MODEL"):
        what = f"{kind}: this package is for a GPU, and its model runs on nothing else"
        yield Fault(what, at, "use KIND_GPU, or leave the group out")
    gpus = group.get("gpus", [])
    if gpus and not about.on_gpu:
        yield Fault("`gpus`: this package is for a cpu", (_GROUPS, index, "gpus"), "leave them out")
    elif gpus and kind in ("KIND_CPU", "KIND_MODEL"):
        yield Fault(f"`gpus` of a group that is {kind}", (_GROUPS, index, "gpus"), "use KIND_GPU")
    for number, gpu in enumerate(gpus):
        if gpu < 0:
            yield Fault(f"no GPU has the number {gpu}", (_GROUPS, index, "gpus", number), "they count from 0")
    for number in twice(gpus):
        what = f"the GPU {gpus[number]} is named twice"
        yield Fault(what, (_GROUPS, index, "gpus", number), "for more instances on it, raise the count")
    if group.get("secondary_devices"):
        what = "`secondary_devices` are deep-learning accelerators, and the model is not built for any"
        yield Fault(what, (_GROUPS, index, "secondary_devices"), "leave them out")


def _sized(group: Mapping[str, Any], index: int) -> Iterator[Fault]:
    count = group.get("count", 1)
    if count < 1:
        what = f"a group of {count} instances: Triton would take a number of its own"
        yield Fault(what, (_GROUPS, index, "count"), "at least 1 is meant; without `count` it is Triton's choice")
    resources = group.get("rate_limiter", {}).get("resources", [])
    for number, resource in enumerate(resources):
        at = (_GROUPS, index, "rate_limiter", "resources", number)
        if not resource.get("name"):
            yield Fault("a resource of the rate limiter needs a name", at, "add name: ...")
        if not resource.get("count"):
            yield Fault("a resource of which an instance needs none", at, "add count: 1")


def _profiles(group: Mapping[str, Any], index: int, about: About) -> Iterator[Fault]:
    if "profile" not in group:
        return
    at: tuple[str | int, ...] = (_GROUPS, index, "profile")
    if about.backend is not Backend.TENSORRT:
        what = "`profile` is about TensorRT's optimization profiles; this package has none"
        if about.part != "model":
            what = "`profile` is about TensorRT's optimization profiles; this model has none"
        yield Fault(what, at, "leave it out")
        return
    for number, name in enumerate(group["profile"]):
        if not name.isdecimal():
            yield Fault(f"profiles are numbers, as text: {name!r} is none", (*at, number), 'as in ["0", "1"]')
        elif about.profiles is not None and int(name) >= about.profiles:
            what = f"the engine has no profile {name}: it has {about.profiles}, counted from 0"
            yield Fault(what, at, "leave it out: the package lists all of them")
    for number in twice(group["profile"]):
        yield Fault(f"the profile {group['profile'][number]} is listed twice", (*at, number), "leave one out")
