"""List the GPUs that a recipe can name, with what each can compute."""

from __future__ import annotations

import argparse

from engine.errors import Exit


def arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare the command line: nothing to choose."""


def run(_arguments: argparse.Namespace) -> Exit:
    """Print a row per GPU."""
    from engine import gpus

    print(f"{'name':<22}{'sm':>4}{'GiB':>6}  dtypes")
    for gpu in gpus.CATALOGUE:
        print(f"{gpu.name:<22}{gpu.sm:>4}{gpu.memory_gib:>6}  {' '.join(gpu.dtypes)}")
    return Exit.OK
