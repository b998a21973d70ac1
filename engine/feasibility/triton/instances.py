"""Instance groups: how many instances of a model Triton starts, and on which devices."""

# Sources: ValidateInstanceGroup in model_config_utils.cc of triton-inference-server/core, InitOptimizationProfiles of
# triton-inference-server/tensorrt_backend.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.feasibility.triton.fault import About, Fault, Overrides, Path
from engine.runtimes.backends import Backend

_GROUPS = "instance_group"


def rule(overrides: Overrides, about: About) -> Iterator[Fault]:
    """Yield a fault for each instance group that Triton refuses, or whose device differs from the package's device."""
    groups = overrides.get(_GROUPS, ())
    for index, group in enumerate(groups):
        yield from _placed(group, (_GROUPS, index), about)
        if "profile" in group:
            yield from _profiles(group["profile"], (_GROUPS, index, "profile"), about)
    if groups and all(group.get("passive") for group in groups):
        yield Fault("all groups are passive: nothing would answer", (_GROUPS, 0, "passive"), "leave one active")


def _placed(group: Mapping[str, Any], path: Path, about: About) -> Iterator[Fault]:
    kind, on_cpu = group.get("kind", "KIND_AUTO"), "this package is for a cpu"
    if not about.on_gpu and kind == "KIND_GPU":
        what = f"KIND_GPU: {on_cpu}, and Triton would look for a GPU"
        yield Fault(what, (*path, "kind"), "use KIND_CPU, or leave the group out")
    if about.on_gpu and about.backend is not Backend.PYTHON and kind in ("KIND_CPU", "KIND_MODEL"):
        what = f"{kind}: this package is for a GPU, and its model runs on nothing else"
        yield Fault(what, (*path, "kind"), "use KIND_GPU, or leave the group out")
    if group.get("gpus") and (kind in ("KIND_CPU", "KIND_MODEL") or not about.on_gpu):
        why = f"the group is {kind}" if about.on_gpu else on_cpu
        yield Fault(f"`gpus`: {why}", (*path, "gpus"), "leave them out, or use KIND_GPU")
    if group.get("secondary_devices"):
        what = "`secondary_devices` are deep-learning accelerators, and the model is not built for any"
        yield Fault(what, (*path, "secondary_devices"), "leave them out")


def _profiles(names: list[str], at: Path, about: About) -> Iterator[Fault]:
    if about.backend is not Backend.TENSORRT:
        what = "`profile` is about TensorRT's optimization profiles; this model has none"
        yield Fault(what, at, "leave it out")
        return
    for number, name in enumerate(names):
        if not name.isdecimal():
            yield Fault(f"profiles are numbers, as text: {name!r} is none", (*at, number), 'as in ["0", "1"]')
        elif about.profiles is not None and int(name) >= about.profiles:
            what = f"the engine has no profile {name}: it has {about.profiles}, counted from 0"
            yield Fault(what, (*at, number), "leave it out: the package lists all of them")
