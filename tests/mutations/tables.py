"""All tables, and a sample of them that holds every third kind."""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import shutil
import subprocess
from functools import cache

from mutations import (
    table_code,
    table_environment,
    table_layout,
    table_links,
    table_machine,
    table_matrix,
    table_outputs,
    table_packages,
    table_recipe,
    table_runtimes,
    table_samples,
    table_sources,
    table_store,
    table_tasks,
    table_tools,
    table_undone,
)
from mutations.mutation import ARCHITECTURE, CHOOSE, MOUNT, RUNTIMES, Mutation

_TABLES = (
    table_recipe,
    table_layout,
    table_links,
    table_sources,
    table_samples,
    table_tools,
    table_machine,
    table_environment,
    table_code,
    table_tasks,
    table_packages,
    table_runtimes,
    table_outputs,
    table_store,
    table_matrix,
    table_undone,
)


def _named() -> dict[str, Mutation]:
    named = [(f"{_kind(table)}: {each.says}", each) for table in _TABLES for each in table.TABLE]
    assert len(dict(named)) == len(named), "two mutations of one table say the same"
    return dict(named)


def _kind(table: object) -> str:
    return str(table.__name__).rpartition("_")[2]  # type: ignore[attr-defined]


ALL = _named()
"""Every mutation by its kind and sentence."""


def sample(seed: int) -> dict[str, Mutation]:
    """Return a mutation of every third kind, always the same for one seed."""
    generator = random.Random(seed)
    kinds = {name.partition(":")[0]: [] for name in ALL}
    for name in ALL:
        kinds[name.partition(":")[0]].append(name)
    some = generator.sample(sorted(kinds), len(kinds) // 3)
    chosen = {generator.choice(kinds[kind]) for kind in some}
    return {name: each for name, each in ALL.items() if name in chosen}


@cache
def _can(need: str) -> bool:
    return _TRIED[need]()


def impossible_here(mutation: Mutation) -> str | None:
    """Return why a mutation cannot be made on this machine, None where it can."""
    return f"one cannot {mutation.needs} on this machine" if mutation.needs and not _can(mutation.needs) else None


def _may_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "sh", "-c", "mount --bind /proc/version /proc/cpuinfo"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _may_choose() -> bool:
    return shutil.which("taskset") is not None and {0, 1} <= os.sched_getaffinity(0)


def _may_rename() -> bool:
    return platform.machine() == "x86_64" and shutil.which("setarch") is not None


def _has_openvino() -> bool:
    return importlib.util.find_spec("openvino") is not None


_TRIED = {ARCHITECTURE: _may_rename, MOUNT: _may_mount, CHOOSE: _may_choose, RUNTIMES: _has_openvino}
