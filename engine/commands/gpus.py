"""List the GPUs that a recipe can name, and their number formats; or show one GPU and its sources."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from engine.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.gpus import Gpu

_TITLES = ("name", "SM", "GiB", "computes in", "TensorRT", "RTX", "memory by")
_SHARED_COLUMNS = 3
"""The number of first columns (name, SM, GiB) that have equal widths in the tables of supported and refused GPUs."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe gpus`."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="one GPU, by any name that it goes by")
    parser.add_argument("--json", action="store_true", help="one JSON list, for programs")


def run(arguments: argparse.Namespace) -> Exit:
    """Print a row for each GPU, or one GPU with the documents that its row is taken from."""
    from engine import gpus

    name = " ".join(arguments.name)
    chosen = [gpus.find(name)] if name else list(gpus.CATALOGUE)
    if arguments.json:
        _print_json(chosen, refused=not name)
    elif name:
        _print_gpu(chosen[0])
    else:
        _print_table(chosen)
    return Exit.OK


def _print_json(chosen: Iterable[Gpu], *, refused: bool) -> None:
    import json

    from engine.gpus import SOURCES, UNSUPPORTED, Gpu
    from engine.gpus.gpu import UnsupportedGpu

    names = ("name", "architecture", "sm", "memory_gib", "dtypes", "dla", "tensorrt", "tensorrt_rtx")
    rows: list[dict[str, object]] = []
    every: list[Gpu | UnsupportedGpu] = [*chosen, *(UNSUPPORTED if refused else ())]
    for gpu in every:
        if isinstance(gpu, Gpu):
            fields = {name: getattr(gpu, name) for name in names}
        else:
            fields = {"name": gpu.name, "sm": gpu.sm, "refused": gpu.why}
        sources = [{"title": SOURCES[tag][0], "url": SOURCES[tag][1]} for tag in gpu.sources]
        rows.append({**fields, "aliases": gpu.aliases, "sources": sources})
    print(json.dumps(rows, indent=1))


def _print_gpu(gpu: Gpu) -> None:
    from engine.gpus import document
    from engine.gpus.parts import SLICES
    from engine.report import grid

    rows = [
        ("computes in", ", ".join(gpu.dtypes)),
        ("TensorRT", f"from {gpu.tensorrt}"),
        ("TensorRT-RTX", "yes" if gpu.tensorrt_rtx else "no"),
    ]
    if gpu.dla:
        rows.append(("DLA", "yes"))
    if gpu.aliases:
        rows.append(("also called", ", ".join(gpu.aliases)))
    if gpu.name in SLICES:
        rows.append(("MIG slices", ", ".join(f"{gpu.name} MIG {each}" for each in SLICES[gpu.name])))
    rows += [("source", document(tag)) for tag in gpu.sources]
    print(f"{gpu.name}: {gpu.architecture}, SM{gpu.sm}, {gpu.memory_gib} GiB")
    grid.show(rows, indent=2)


def _print_table(chosen: Sequence[Gpu]) -> None:
    from engine.gpus import UNSUPPORTED, document
    from engine.report import grid

    rows = [_TITLES, *map(_row, chosen)]
    refused = [(gpu.name, str(gpu.sm), "", gpu.why) for gpu in UNSUPPORTED]
    widths = [max(len(row[column]) for row in (*rows, *refused)) for column in range(_SHARED_COLUMNS)]
    columns = [grid.Column(right=column > 0, width=width) for column, width in enumerate(widths)]
    grid.show(rows, columns)
    print("\nnothing is built for:")
    grid.show(refused, columns)
    tags = dict.fromkeys(
        [tag for gpu in chosen for tag in gpu.sources] + [tag for gpu in UNSUPPORTED for tag in gpu.sources]
    )
    print("\nsources (of one GPU: `recipe gpus NAME`):")
    grid.show([(tag, document(tag)) for tag in tags], indent=2)


def _row(gpu: Gpu) -> tuple[str, ...]:
    """Return the cells of a GPU's row, with blanks in place of the dtypes that the GPU lacks."""
    from engine.gpus import DTYPES

    dtypes = " ".join(dtype if dtype in gpu.dtypes else " " * len(dtype) for dtype in DTYPES)
    rtx = "yes" if gpu.tensorrt_rtx else "no"
    return (gpu.name, str(gpu.sm), str(gpu.memory_gib), dtypes, gpu.tensorrt, rtx, gpu.sold)
