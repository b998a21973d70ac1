"""List the GPUs that a recipe can name, with what each can compute; or all that is known of one."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.gpus import Gpu


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="one GPU, by any name that it goes by")
    parser.add_argument("--json", action="store_true", help="one JSON list, for programs")


def run(arguments: argparse.Namespace) -> Exit:
    """Print a row per GPU, or one GPU with the documents behind its row."""
    from engine import gpus

    name = " ".join(arguments.name)
    chosen = [gpus.find(name)] if name else list(gpus.CATALOGUE)
    if arguments.json:
        _print_json(chosen, refused=not name)
    elif name:
        print("\n".join(_about(chosen[0])))
    else:
        print("\n".join(_table(chosen)))
    return Exit.OK


def _print_json(chosen: Iterable[Gpu], *, refused: bool) -> None:
    import json

    from engine.gpus import REFUSED, SOURCES

    rows: list[dict[str, object]] = [
        {
            "name": gpu.name,
            "architecture": gpu.architecture,
            "sm": gpu.sm,
            "memory_gib": gpu.memory_gib,
            "dtypes": list(gpu.dtypes),
            "dla": gpu.dla,
            **{name: getattr(gpu, name) for name in ("tensorrt", "tensorrt_rtx")},
            "aliases": list(gpu.aliases),
            "sources": [{"title": SOURCES[tag][0], "url": SOURCES[tag][1]} for tag in gpu.sources],
        }
        for gpu in chosen
    ]
    rows += [
        {
            "name": old.name,
            "sm": old.sm,
            "refused": old.why,
            "aliases": list(old.aliases),
            "sources": [{"title": SOURCES[tag][0], "url": SOURCES[tag][1]} for tag in old.sources],
        }
        for old in (REFUSED if refused else ())
    ]
    print(json.dumps(rows, indent=1))


def _about(gpu: Gpu) -> Iterator[str]:
    from engine.gpus import SOURCES

    yield f"{gpu.name}: {gpu.architecture}, SM{gpu.sm}, {gpu.memory_gib} GiB"
    yield f"  computes in    {', '.join(gpu.dtypes)}"
    yield f"  TensorRT       from {gpu.tensorrt}"
    yield f"  TensorRT-RTX   {'yes' if gpu.tensorrt_rtx else 'no'}"
    if gpu.dla:
        yield "  DLA            yes"
    if gpu.aliases:
        yield f"  also called    {', '.join(gpu.aliases)}"
    for tag in gpu.sources:
        yield f"  source         {SOURCES[tag][0]}: {SOURCES[tag][1]}"


def _table(chosen: Iterable[Gpu]) -> Iterator[str]:
    from engine.gpus import DTYPES, REFUSED, SOURCES

    shown = list(chosen)
    yield f"{'name':<28}{'SM':>4}{'GiB':>5}  {'computes in':<43}{'TensorRT':<9}{'RTX':<5}memory by"
    for gpu in shown:
        # A column a dtype: what one GPU lacks and the next has stands out.
        dtypes = " ".join(dtype if dtype in gpu.dtypes else " " * len(dtype) for dtype in DTYPES)
        rtx = "yes" if gpu.tensorrt_rtx else "no"
        row = f"{gpu.name:<28}{gpu.sm:>4}{gpu.memory_gib:>5}  {dtypes:<43}{gpu.tensorrt:<9}{rtx:<5}{gpu.sold}"
        yield row
    yield ""
    yield "nothing is built for:"
    for old in REFUSED:
        yield f"{old.name:<28}{old.sm:>4}{'':>5}  {old.why}"
    yield ""
    tags = dict.fromkeys(
        [tag for gpu in shown for tag in gpu.sources] + [tag for old in REFUSED for tag in old.sources]
    )
    yield "sources (of one GPU: `recipe gpus NAME`):"
    yield from (f"  {tag:<15} {SOURCES[tag][0]}: {SOURCES[tag][1]}" for tag in tags)
