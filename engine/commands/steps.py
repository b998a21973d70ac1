"""List all steps: the steps of recipe itself, and the steps of other installed packages."""

from __future__ import annotations

import argparse

from engine.errors import Exit


def arguments(_parser: argparse.ArgumentParser) -> None:
    """Declare no arguments: `recipe steps` takes none."""


def run(_arguments: argparse.Namespace) -> Exit:
    """Print for each step its name, its inputs and its output, and the first line of its docstring."""
    from engine.builder import registry
    from engine.report import grid

    rows = []
    for name, step in sorted(registry.steps().items()):
        about = next(iter((step.__doc__ or "").strip().splitlines()), "")
        inputs = ", ".join(step.inputs()) or "sources"
        place = f", after {step.after}" if step.after else ""
        origin = "" if step.__module__.startswith("engine.") else f"  [{step.__module__}]"
        rows += [(name, f"{inputs} -> {step.makes}{place}{origin}"), ("", about)]
    grid.show(rows)
    return Exit.OK
