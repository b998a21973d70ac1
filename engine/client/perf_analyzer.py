"""perf_analyzer: Triton's own load generator where it is installed, its options and figures in our words."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from engine.client.counters import between
from engine.client.entry import Entry
from engine.client.figures import Errors, Latencies, LoadFigures, ModelTimes, NotMeasured
from engine.client.requests import Asked
from engine.errors import StepError

if TYPE_CHECKING:
    import numpy as np

    from engine.client.client import Client
    from engine.client.entry import Tensor
    from engine.client.load import Point, Settings

NAME = "perf_analyzer"
_WINDOWS = 3
"""Measurements that perf_analyzer makes at the least; it reports them together."""
_FEWEST = 50
_UNSTABLE = 999
"""Percent that its measurements may differ: it gives no figures at all where they differ by more."""
_FIGURES = {"mean_ms": "Avg latency", **{f"p{share}_ms": f"p{share} latency" for share in (50, 90, 95, 99)}}


def find(named: str | None) -> tuple[Path | None, str]:
    """Return the program that can run here, None where there is none, and what there is to say about it."""
    found = shutil.which(named or NAME)
    if found is None:
        return None, f"there is no {named}" if named else f"{NAME} is not on the PATH"
    try:
        done = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"{found} does not run: {error}"
    said = (done.stdout.strip() or done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
    version = re.search(r"[0-9]+\.[0-9.]+", said)
    if done.returncode or version is None:
        return None, f"{found} does not run: {said}"
    return Path(found), f"{NAME} {version[0]}"


def hint(said: str) -> str:
    """Return what brings the program, or the library that it says it lacks."""
    if "libcudart" in said:
        brings = "pip install nvidia-cuda-runtime-cu12 brings it, for LD_LIBRARY_PATH to name its folder lib"
    elif "libb64" in said:
        brings = "apt-get install libb64-0d brings it"
    else:
        brings = "tritonclient's extra perf-analyzer brings it"
    return f"{brings}; --with own needs nothing"


def put(
    client: Client, entry: Entry, asked: Sequence[Asked], *, program: Path, named: str, point: Point, settings: Settings
) -> LoadFigures:
    """Put one load on the server by perf_analyzer; return its figures, and the server's counters around it.

    It measures in three windows of as many requests as the duration promises, and has a warm-up of its own.
    Raises StepError with its own words.
    """
    batch = len(next(iter(asked[0].arrays.values()))) if entry.largest else 1
    alike = [each for each in asked if not entry.largest or len(next(iter(each.arrays.values()))) == batch]
    with tempfile.TemporaryDirectory() as folder:
        data, made = Path(folder) / "data.json", Path(folder) / "made.csv"
        data.write_text(json.dumps({"data": [row for each in alike for row in _rows(entry, each, batch)]}), "utf-8")
        window = max(_FEWEST, round(_expected(client, entry, alike[0], point) * settings.duration / _WINDOWS))
        command = [
            str(program), "-m", entry.name, "-u", client.address.place, "-i", str(client.address.protocol),
            "-b", str(batch), "--input-data", str(data), "-f", str(made), "--verbose-csv",
            "--measurement-mode", "count_windows", "--measurement-request-count", str(window),
            "--stability-percentage", str(_UNSTABLE), *_load(point, settings),
        ]  # fmt: skip
        before = client.statistics()
        said = _run(command, patience=60 + 20 * settings.duration + settings.timeout)
        after = client.statistics()
        return _figures(point, named, batch, made, said, server=between(entry, before, after))


def _expected(client: Client, entry: Entry, asked: Asked, point: Point) -> float:
    """Return requests a second to plan with: what one caller gets, times the callers, as far as there are CPUs."""
    if point.rate:
        return point.rate
    ask = client.asking(entry, asked.arrays)
    ask()
    start = perf_counter()
    ask()
    return min(point.concurrency, os.cpu_count() or 1) / (perf_counter() - start)


def _load(point: Point, settings: Settings) -> list[str]:
    if point.concurrency:
        return ["--concurrency-range", f"{point.concurrency}:{point.concurrency}:1"]
    return ["--request-rate-range", f"{point.rate:g}:{point.rate:g}:1", "--request-distribution", settings.arrivals]


def _run(command: list[str], *, patience: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise StepError(f"{NAME} was not done after {patience:g} s", hint="measure with --with own") from None
    if done.returncode:
        words = (done.stderr or done.stdout).partition("\nUsage: ")[0]  # its whole help follows
        said = [line for line in words.splitlines() if line.strip()]
        raise StepError(f"{NAME} failed (exit {done.returncode})", said[-6:], "measure with --with own")
    return done.stdout


def _figures(
    point: Point, named: str, batch: int, made: Path, said: str, *, server: Mapping[str, ModelTimes]
) -> LoadFigures:
    with made.open(newline="") as file:
        row = next(csv.DictReader(file))
    count = re.search(r"Request count: ([0-9]+)", said)
    requests = int(count[1]) if count else 0
    latency = {name: round(float(row[column]) / 1e3, 4) for name, column in _FIGURES.items()}
    return LoadFigures(
        concurrency=point.concurrency or None,
        rate=point.rate or None,
        by=named,
        throughput=round(float(row["Inferences/Second"]) / batch, 3),
        requests=requests,
        latency=Latencies(**latency, requests=requests),
        errors=Errors(count=0, share=0.0, messages={}),  # it gives up at the first
        client=NotMeasured(),
        server=server,
    )


def _rows(entry: Entry, asked: Asked, batch: int) -> list[dict[str, object]]:
    """Return what a request holds as perf_analyzer reads it: a row each where Triton counts rows, else the whole."""
    tensors = [tensor for tensor in entry.inputs if tensor.name in asked.arrays]
    if not entry.largest:
        return [{tensor.name: _content(tensor, asked.arrays[tensor.name]) for tensor in tensors}]
    return [
        {tensor.name: _content(tensor, asked.arrays[tensor.name][number]) for tensor in tensors}
        for number in range(batch)
    ]


def _content(tensor: Tensor, array: np.ndarray) -> dict[str, object]:
    """Return one tensor: texts as they are, anything else as bytes, each text of them with its length in front."""
    shape = list(array.shape)
    if tensor.datatype != "BYTES":
        return {"content": {"b64": base64.b64encode(array.tobytes()).decode()}, "shape": shape}
    try:
        return {"content": [each.decode() for each in array.ravel()], "shape": shape}
    except UnicodeDecodeError:
        packed = b"".join(struct.pack("<I", len(each)) + each for each in array.ravel())
        return {"content": {"b64": base64.b64encode(packed).decode()}, "shape": shape}
