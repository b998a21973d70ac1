"""timm for the tests, installed beside the environment where that has none that can be imported; checkpoints of it."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE_TORCHVISION = Path(__file__).with_name("fake_torchvision")
_PILLOW = "pillow"
"""What timm imports and torchvision would have brought."""

_SMALL = 128
"""Pixels up to which the last layers see so few places that more images must make up for them."""


def folders(cache: Path) -> list[str]:
    """Return what must come before all else on the import path for timm; nothing where it is installed and works.

    There is a torchvision for each build of torch, but not from every index, so it is no part of the extra `dev`. Where
    timm cannot be imported, timm itself is real, in the version of constraints.txt, and a stand-in for torchvision
    holds the names that it asks for.
    """
    if _can_import("import timm"):
        return []
    if _can_import("import PIL, importlib.metadata; importlib.metadata.version('timm')"):
        return [str(FAKE_TORCHVISION)]
    return [str(FAKE_TORCHVISION), str(_installed(cache))]


@contextlib.contextmanager
def importable(paths: list[str]) -> Iterator[None]:
    """Import timm, and leave no stand-in behind: who looks for torchvision later must not find one."""
    sys.path[:0] = paths
    try:
        importlib.import_module("timm.layers")
    finally:
        for path in paths:
            sys.path.remove(path)
        if paths:
            for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
                del sys.modules[name]
    sys.path += [path for path in paths if path != str(FAKE_TORCHVISION)]
    yield


def checkpoint(directory: Path, architecture: str, *, size: int, **options: object) -> Path:
    """Save a model as timm's repositories hold it, with seeded random weights and activations of a sane size."""
    import timm
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = timm.create_model(architecture, **options)
        _settle(model, size)
    timm.models.save_for_hf(model, str(directory), safe_serialization=True)
    return directory


def _settle(model: object, size: int) -> None:
    """Give the batch norms the statistics of some random images: untrained, they would let activations grow."""
    import torch

    norms = [each for each in model.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the average over all batches
        norm.train()
    with torch.no_grad():
        for _ in range(2):
            model(torch.randn(4 if size > _SMALL else 32, 3, size, size))
    model.eval()


def _can_import(code: str) -> bool:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode == 0


def _installed(cache: Path) -> Path:
    """Install timm without what it depends on, once. Skips, with pip's words, where it cannot be had."""
    [pinned] = [each for each in (ROOT / "constraints.txt").read_text().splitlines() if each.startswith("timm==")]
    place = cache / pinned
    if place.is_dir():
        return place
    scratch = cache / f"{pinned}-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", scratch, pinned, _PILLOW]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = done.stderr.strip().splitlines()
        pytest.skip(f"{pinned} could not be installed: {errors[-1] if errors else 'pip printed nothing'}")
    with contextlib.suppress(OSError):  # another process of the tests was quicker
        scratch.rename(place)
    shutil.rmtree(scratch, ignore_errors=True)
    return place
