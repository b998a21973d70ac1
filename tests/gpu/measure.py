"""Measure models on this machine's GPU in every way that runs here, beside what a user would run instead.

    python tests/gpu/measure.py --into gpu-measurements >> docs/measured.md

Each part (a build at one shape, a probe, a server) runs in processes of its own within a time limit, and has its line
in INTO/rows.jsonl as soon as it has ended. The same command goes on where it stopped: a part that was measured is not
measured again, unless `--again` is given; a part that failed is tried again. Markdown goes to stdout: latencies beside
the floor, kernels, loads on a server, whether the limits are kept, and what did not run and why. What is said meanwhile
goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(_TESTS.parent), str(_TESTS / "support")]

import gpu_floor  # noqa: E402 - this is a script: nobody has set the path for it
import gpu_parts  # noqa: E402
import gpu_ways as ways  # noqa: E402
from gpu_floor import BERT, SHAPES, Peaks, Work  # noqa: E402
from gpu_parts import NotRunError, Part  # noqa: E402

from engine.machine import (  # noqa: E402
    cuda,
    local_gpus,
    tools,
)

_TOOLS = ("onnxruntime-gpu", "tensorrt", "tensorrt_rtx", "torch", "triton", "transformers")
_LATENCIES = (
    "model", "shape", "package", "measured", "mean ms", "p50", "p95", "p99", "times the floor", "against pytorch fp32",
    "worst cosine", "MB",
)  # fmt: skip
_EAGER = "pytorch-fp32"
Row = Mapping[str, Any]
Shape = tuple[int, int]
Floors = Mapping[tuple[str, Shape], float]
"""The milliseconds that no call of a model at a shape can fall below."""


class WrongMachineError(Exception):
    """The file has rows of another machine or of other versions."""


class Rows:
    """The rows of the parts that have run, by the name of the part; a part that failed has a row with `why`."""

    def __init__(self, file: Path, machine: Row) -> None:
        """Read the rows of earlier runs, or begin a file with what describes the machine.

        A last line that a crash has cut off is dropped. Raises WrongMachineError for rows of another machine.
        """
        self.file = file
        self.by_part: dict[str, Row] = {}
        lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        whole = [line for line in lines if line.endswith("\n")]
        if len(whole) < len(lines):
            file.write_text("".join(whole), "utf-8")
        before, *rows = [json.loads(line) for line in whole] or [None]
        if before is None:
            self._write(machine)
        elif before != machine:
            raise WrongMachineError(f"{file} has rows of {before}, and this is {machine}")
        self.by_part = {row["part"]: row for row in rows}

    def has(self, part: str) -> bool:
        """Tell whether a part has been measured; a part that failed has not."""
        return part in self.by_part and "why" not in self.by_part[part]

    def add(self, part: str, row: Row) -> None:
        """Write the row of a part to the disk."""
        self.by_part[part] = {"part": part, **row}
        self._write(self.by_part[part])

    def _write(self, row: Row) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0; 1 where there is nothing to measure on, 2 where the file is another machine's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=Path("gpu-measurements"), help="the folder (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="measure everything again")
    parser.add_argument("--only", default="", help="only the parts whose names have this text")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of a part (default: %(default)g)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no part after so many minutes")
    parser.add_argument("--list", action="store_true", help="print the names of the parts, and measure nothing")
    options = parser.parse_args(words)
    chosen = [part for part in gpu_parts.parts() if options.only in part.name]
    if options.list:
        print("\n".join(part.name for part in chosen))
        return 0
    if (reason := ways.no_gpu()) is not None:
        print(f"nothing was measured: {reason}", file=sys.stderr)
        return 1
    options.into.mkdir(parents=True, exist_ok=True)
    try:
        rows = Rows(options.into.resolve() / "rows.jsonl", {"machine": _heading(), "versions": _versions()})
    except WrongMachineError as error:
        print(f"{error}: name another folder with --into", file=sys.stderr)
        return 2
    measure(chosen, rows, options)
    print(section(rows.by_part, [part.name for part in gpu_parts.parts()], _heading(), _versions()))
    return 0


def measure(
    parts: Iterable[Part], rows: Rows, options: argparse.Namespace, clock: Callable[[], float] = time.monotonic
) -> None:
    """Run the parts that the file does not have, and write the row of each; an error ends its part alone."""
    until = clock() + 60 * options.minutes
    for part in parts:
        if rows.has(part.name) and not options.again:
            continue
        if clock() >= until:
            print(f"{part.name}: the time is over", file=sys.stderr)
            continue
        print(part.name, file=sys.stderr)
        began = clock()
        try:
            row = dict(part.run(rows.file.parent, options.limit))
        except Exception as error:  # noqa: BLE001 - whatever a part raises, the others are measured
            row = {"why": str(error) if isinstance(error, NotRunError) else f"{type(error).__name__}: {error}"}
            print(f"  {row['why']}", file=sys.stderr)
        rows.add(part.name, {**row, "seconds": round(clock() - began, 1)})


def section(by_part: Mapping[str, Row], names: Sequence[str], heading: str, versions: str) -> str:
    """Return a part of docs/measured.md; `names` are the names of all parts."""
    ran = [row for row in by_part.values() if "why" not in row]
    latencies = [row for row in ran if "rows" in row]
    floors = _floors(ran)
    lines = [
        f"\n### {heading}\n",
        versions,
        "",
        *_table(_LATENCIES, (_cells(*each, floors) for each in _pairs(latencies))),
    ]
    if any(row["model"] == BERT for row in latencies):
        lines += ["", f"The weights of {BERT} are random with a fixed seed, so nothing was downloaded."]
    clocks = sorted({row["clocks"] for row in latencies})
    lines += ["", f"Clocks while it was measured: {'; '.join(clocks)}."] if clocks else []
    lines += _of_floors(ran, floors)
    kernels = [row for row in ran if "kernels" in row]
    lines += (
        ["", *_table(("model", "shape", "package", "kernels of a call", "their ms"), map(_of_kernels, kernels))]
        if kernels
        else []
    )
    loads = [(row, load) for row in ran if "loads" in row for load in row["loads"]]
    lines += (
        ["", *_table(("served as", "clients", "requests/s", "p99 ms"), (_of_load(*each) for each in loads))]
        if loads
        else []
    )
    gpu = heading.partition(",")[0]
    lines += ["", "Limits:", "", *(f"- {each}" for each in gpu_floor.verdicts(gpu, _best(latencies)))]
    lines += [f"- {gpu_floor.eager_verdict(_eager_ratio(latencies))}"]
    lines += ["", "Not measured:", "", *(f"- {each}" for each in _left_out(by_part, names, latencies))]
    return "\n".join(lines)


def _pairs(latencies: Iterable[Row]) -> list[tuple[Row, Row]]:
    return [(part, row) for part in latencies for row in part["rows"]]


def _is_built(row: Row) -> bool:
    """Tell whether a row is of the built model, run in one way or the other, and not of a rival."""
    return bool(row["ours"] or row.get("other_way"))


def _cells(part: Row, row: Row, floors: Floors) -> list[str]:
    built = _is_built(row)
    floor = floors.get((part["model"], tuple(part["shape"])))
    ratio = row["ratio_to"].get(_EAGER)
    return [
        part["model"],
        _shape(part),
        part["way"],
        f"**{row['runtime']}**" if built else row["runtime"],
        *(f"{row[name]:.3f}" for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms")),
        f"{row['p50_ms'] / floor:.1f}" if floor else "",
        f"{ratio:.2f} x" if ratio else "",
        f"{part['worst_cosine']:.6f}" if built and part["worst_cosine"] is not None else "",
        f"{part['size'] / 1e6:.1f}" if built and part["size"] else "",
    ]


def _shape(part: Row) -> str:
    return " x ".join(map(str, part["shape"]))


def _floors(ran: Iterable[Row]) -> dict[tuple[str, Shape], float]:
    """Return the floor in milliseconds of each model and shape; none for what was not counted or measured."""
    rows = list(ran)
    peaks = next((Peaks(row["flops_per_s"], row["bytes_per_s"]) for row in rows if "bytes_per_s" in row), None)
    works = {(row["model"], row["sequence"]): Work(row["flops"], row["weights"]) for row in rows if "flops" in row}
    return {
        (model, shape): gpu_floor.floor_ms(work, shape[0], peaks)
        for (model, sequence), work in works.items()
        for shape in SHAPES
        if peaks is not None and shape[1] == sequence
    }


def _of_floors(ran: Iterable[Row], floors: Floors) -> list[str]:
    peaks = next((row for row in ran if "bytes_per_s" in row), None)
    if peaks is None:
        return []
    speeds = f"{peaks['flops_per_s'] / 1e12:.0f} TFLOP/s and {peaks['bytes_per_s'] / 1e12:.2f} TB/s"
    basis = (
        f"The floor is the longer of the products in fp16 and of one read of the weights: {speeds}, as measured here."
    )
    rows = ([model, " x ".join(map(str, shape)), f"{floor:.3f}"] for (model, shape), floor in floors.items())
    return ["", basis, "", *_table(("model", "shape", "floor ms"), rows)]


def _of_kernels(row: Row) -> list[str]:
    return [row["model"], _shape(row), row["way"], str(row["kernels"]), f"{row['kernels_ms']:.3f}"]


def _of_load(row: Row, load: Row) -> list[str]:
    p99 = load["latency"].get("p99_ms")  # a load that answers too few requests has none
    return [row["kind"], str(load["concurrency"]), f"{load['throughput']:.1f}", f"{p99:.3f}" if p99 else "not measured"]


def _best(latencies: Iterable[Row]) -> dict[tuple[str, Shape], float]:
    """Return the shortest p50 of each model and shape, of a package that keeps the bounds of its recipe."""
    best: dict[tuple[str, Shape], float] = {}
    for part, row in _pairs(latencies):
        if _is_built(row) and part["within_bounds"]:
            key = part["model"], tuple(part["shape"])
            best[key] = min(row["p50_ms"], best.get(key, row["p50_ms"]))
    return best


def _eager_ratio(latencies: Iterable[Row]) -> float | None:
    """Return how many times longer PyTorch in fp32 takes for BERT-base at the first shape than the fastest package."""
    ratios = []
    for part in latencies:
        eager = next((row["p50_ms"] for row in part["rows"] if row["runtime"] == _EAGER), None)
        if part["model"] == BERT and tuple(part["shape"]) == SHAPES[0] and eager and part["within_bounds"]:
            ratios += [eager / row["p50_ms"] for row in part["rows"] if _is_built(row)]
    return max(ratios, default=None)


def _left_out(by_part: Mapping[str, Row], names: Iterable[str], latencies: Iterable[Row]) -> list[str]:
    reasons = [
        f"{name}: {by_part.get(name, {'why': 'not begun'})['why']}"
        for name in names
        if "why" in by_part.get(name, {"why": 0})
    ]
    rivals = [f"{part['model']}, {_shape(part)}, {why}" for part in latencies for why in part["unmeasured"]]
    return [*reasons, *rivals] or ["nothing"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def _heading() -> str:
    return f"{cuda.devices()[0].name}, driver {local_gpus.driver()}, CUDA {cuda.runtime_version()}"


def _versions() -> str:
    versions = {tool: tools.version_of(tool) for tool in _TOOLS}
    return ", ".join(f"{tool} {version}" for tool, version in versions.items() if version != tools.MISSING) + "."


if __name__ == "__main__":
    sys.exit(main())
