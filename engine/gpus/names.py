"""Names of GPUs: finds the GPU that a person, a recipe or a driver names, also of boards that share a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from engine.errors import UsageError
from engine.gpus import parts
from engine.gpus.catalogue import CATALOGUE, UNSUPPORTED
from engine.gpus.gpu import Gpu, document
from engine.text import lists, suggestions

_NOISE = ("nvidia", "tesla", "geforce", "gpu", "sxm", "sxm4", "sxm5", "generation", "nvgpu")
_DIVISIBLE = (80, 90, 100, 103)
"""The SMs of the data center GPUs that MIG can split: A30, A100, and all from Hopper on.

Source: NVIDIA, MIG User Guide.
"""
_ALSO_DIVISIBLE = ("RTX PRO 6000 Blackwell", "RTX PRO 5000 Blackwell", "RTX PRO 4500 Blackwell")
_NO_NAMES = ("", "cuda", "cuda-0", "0")
"""What other tools call a GPU, and what names no GPU here."""
_CAPABILITY = r"(?:sm|compute|cc|compute-capability)-?(\d\d?)-?(\d)"
"""A compute capability in place of a GPU, such as sm_75 or `compute capability 7.5`."""
_MEMORY = r"(.+)-([0-9]+)-?gi?b?"
"""A GPU with its memory, such as `a10-24gb`, as shops and clouds write it."""
_BOARD_MEMORY = r"[ -][0-9]+ ?GB?\b"
"""The memory in the name of one of several boards: A100-80GB."""
_LISTED = 4
"""The largest number of GPUs of one compute capability that a hint lists."""
_FAMILIES = {"orin": 87, "thor": 110}
"""Name of a Jetson family -> the SM of the family's modules.

For every module of a Jetson family, NVML reports only the name of the family.
"""


def find(name: str) -> Gpu:
    """Return the GPU with the name `name`: "T4", "Tesla T4", "NVIDIA GeForce RTX 3090".

    For a part of a GPU, such as "NVIDIA A100-SXM4-40GB MIG 1g.5gb", `memory_gib` is the memory of the part. Raises
    UsageError for an unknown name, with similar names, and for an unsupported GPU, with the reason.
    """
    if part := parts.part_of(name):
        return _part(part)
    gpu = _BY_NAME.get(_simple(name))
    if gpu is not None:
        return gpu
    whole, memory_gib = _with_memory(name)
    if whole is not None and whole.memory_gib == memory_gib:
        return whole
    if old := _TOO_OLD.get(_simple(name)):
        what = f"nothing is built for the {old.name} (SM{old.sm}): {old.why}"
        raise UsageError(what, [document(tag) for tag in old.sources], hint="the nearest that works is the T4 (SM75)")
    raise UsageError(f"no GPU is known as {name!r}", hint=near(name))


def _with_memory(name: str) -> tuple[Gpu | None, int]:
    """Return the GPU and the memory in GB of a name such as `A10-24GB`; None for a name that ends in no memory."""
    match = re.fullmatch(_MEMORY, _simple(name))
    return (_BY_NAME.get(match[1]), int(match[2])) if match else (None, 0)


def known(name: str) -> Gpu | None:
    """Return the GPU with a name, as `find` does; None for a name that `find` refuses."""
    try:
        return find(name)
    except UsageError:
        return None


def _part(part: parts.GpuPart) -> Gpu:
    whole = find(part.whole)
    if part.slice and whole.sm not in _DIVISIBLE and not whole.name.startswith(_ALSO_DIVISIBLE):
        what = f"the {whole.name} cannot be divided: it has no MIG"
        raise UsageError(what, hint=f"name the whole {whole.name}; A30, A100, H100, H200 and B200 can be divided")
    if not 0 < part.memory_gib <= whole.memory_gib:
        what = f"the {whole.name} has {whole.memory_gib} GiB, and no part of {part.memory_gib} GB"
        raise UsageError(what, hint="`nvidia-smi mig -lgip` lists the parts that there are")
    if not parts.exists(part, whole.name, whole.memory_gib):
        listed = parts.SLICES.get(whole.name)
        what = f"the {whole.name} has no part{part.suffix}"
        facts = [f"its slices: {', '.join(listed)}", parts.SOURCE] if listed else [parts.SOURCE]
        raise UsageError(what, facts, hint="`nvidia-smi mig -lgip` lists the parts that there are")
    return whole._replace(name=f"{whole.name}{part.suffix}", memory_gib=part.memory_gib, aliases=())


def near(name: str) -> str:
    """Return a hint with names of the catalogue that look like `name`."""
    simple = _simple(name)
    if name and simple in _NO_NAMES:
        return "name the GPU, as in `device: T4`; `recipe gpus` lists those that are known"
    if (sm := re.fullmatch(_CAPABILITY, simple)) and (
        same := [gpu.name for gpu in CATALOGUE if gpu.sm == int(sm[1] + sm[2])]
    ):
        return f"name a GPU of SM{sm[1]}{sm[2]}: {lists.first_of(same, _LISTED)}"
    if whole := _with_memory(name)[0]:
        return suggestions.did_you_mean(f"{whole.name} ({whole.memory_gib} GiB)")
    squeezed = [gpu.name for key, gpu in _BY_NAME.items() if simple and key.replace("-", "") == simple.replace("-", "")]
    if squeezed:
        return suggestions.did_you_mean(squeezed[0])
    longer = [gpu.name for gpu in CATALOGUE if simple and _simple(gpu.name).startswith(simple + "-")]
    family = [gpu.name for gpu in CATALOGUE if gpu.sm == _FAMILIES.get(simple)]
    similar = [_BY_NAME[match].name for match in suggestions.nearest(simple, _BY_NAME, count=3)]
    names = list(dict.fromkeys(family or longer or similar))
    if len(names) > 2 * _LISTED:
        return f"name one of them: {lists.first_of(names, _LISTED)}"
    return suggestions.did_you_mean(*names) if names else "`recipe gpus` lists those that are known"


def matches(local: str, target: str) -> bool:
    """Tell whether two names mean one GPU: `local` comes from the driver, and `target` from a recipe."""
    try:
        target_gpu = find(target)
    except UsageError:
        return False
    if family := _FAMILIES.get(_simple(local)):
        return target_gpu.sm == family
    try:
        return find(local) == target_gpu
    except UsageError:
        return False


def _simple(name: str) -> str:
    """Return a GPU's name in lower case, without brands and punctuation: `NVIDIA A100-SXM4-40GB` -> `a100-40gb`."""
    words = re.split(r"[^a-z0-9]+", name.lower().replace("with max-q design", "laptop"))
    return "-".join(word for word in words if word and word not in _NOISE)


_BY_NAME = {_simple(name): gpu for gpu in CATALOGUE for name in (gpu.name, *gpu.aliases)}
_TOO_OLD = {_simple(name): old for old in UNSUPPORTED for name in (old.name, *old.aliases)}


def with_capability(name: str, sm: int) -> str:
    """Return a GPU's name with its compute capability, as CUDA writes it: `Tesla T4 (sm_75)`."""
    return f"{name} (sm_{sm})"


def called(named: Sequence[Gpu]) -> str:
    """Return the names and SMs of GPUs as a text: `the T4 (SM75) and the A10 (SM86)`."""
    return " and ".join(f"the {gpu.name} (SM{gpu.sm})" for gpu in named)


@cache
def read_as(name: str) -> str | None:
    """Return a sentence that says which board a name without memory means: "A100 is read as A100-40GB; ...".

    None for a name of a single board, and for a name that tells its memory.
    """
    part = parts.part_of(name)
    whole = name if part is None else part.whole
    gpu = known(whole)
    if gpu is None or re.search(_BOARD_MEMORY, whole, re.IGNORECASE):
        return None
    others = [each for each in CATALOGUE if each != gpu and _without_memory(each.name) == _without_memory(gpu.name)]
    if not others:
        return None
    other = " or ".join(f"{each.name} for {each.memory_gib} GiB" for each in others)
    meant = gpu.name if re.search(_BOARD_MEMORY, gpu.name) else f"the {gpu.name} with {gpu.memory_gib} GiB"
    return f"{whole} is read as {meant}; write {other}"


def _without_memory(name: str) -> str:
    return re.sub(_BOARD_MEMORY, "", name)
