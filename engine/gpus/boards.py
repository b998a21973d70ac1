"""Boards: GPUs that are sold under one name with different memory, and which one a name without memory means."""

from __future__ import annotations

import re
from functools import cache

from engine.gpus import parts
from engine.gpus.catalogue import CATALOGUE
from engine.gpus.names import known

_MEMORY = r"[ -][0-9]+ ?GB?\b"


@cache
def read_as(name: str) -> str | None:
    """Return a sentence that says which board a name without memory means: "A100 is read as A100-40GB; ...".

    None for a name of a single board, and for a name that tells its memory.
    """
    part = parts.part_of(name)
    whole = name if part is None else part.whole
    gpu = known(whole)
    if gpu is None or re.search(_MEMORY, whole, re.IGNORECASE):
        return None
    others = [each for each in CATALOGUE if each != gpu and _without_memory(each.name) == _without_memory(gpu.name)]
    if not others:
        return None
    other = " or ".join(f"{each.name} for {each.memory_gib} GiB" for each in others)
    meant = gpu.name if re.search(_MEMORY, gpu.name) else f"the {gpu.name} with {gpu.memory_gib} GiB"
    return f"{whole} is read as {meant}; write {other}"


def _without_memory(name: str) -> str:
    return re.sub(_MEMORY, "", name)
