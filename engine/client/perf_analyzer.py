"""perf_analyzer: load tests by Triton's own load generator, where perf_analyzer is installed."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from engine.client.encoded import raw_bytes
from engine.client.figures import Errors, Latencies, LoadFigures, ModelTimes, NotMeasured, between
from engine.client.model_metadata import ModelMetadata
from engine.client.requests import InferRequest
from engine.errors import StepError
from engine.kit.bench.stats import MS_DIGITS
from engine.machine import programs

if TYPE_CHECKING:
    import numpy as np

    from engine.client.client import Client
    from engine.client.generator import LoadSettings
    from engine.client.load import Point
    from engine.client.model_metadata import TensorMetadata

NAME = "perf_analyzer"
_WINDOWS = 3
"""The fewest windows of requests that perf_analyzer measures, one after the other, for one report."""
_FEWEST_REQUESTS = 50
"""The fewest requests in a measurement window of perf_analyzer."""
_STABILITY = 999
"""Percent by which perf_analyzer's measurement windows may differ; where they differ by more, there is no report."""
_VERSION_SECONDS = 30
"""Seconds that `perf_analyzer --version` may take."""
_BASE_SECONDS, _DURATIONS = 60, 20
"""perf_analyzer is stopped after `_BASE_SECONDS`, `_DURATIONS` times the load's duration and one request's timeout."""
_LAST_LINES = 6
"""The largest number of lines of perf_analyzer's output that an error shows."""
_MICROSECONDS_PER_MS = 1e3
_FIGURES = {"mean_ms": "Avg latency", **{f"p{share}_ms": f"p{share} latency" for share in (50, 90, 95, 99)}}


def find(named: str | None) -> tuple[Path | None, str]:
    """Return the path of perf_analyzer, perhaps `named`, and its name with the version; or None and the reason."""
    path = shutil.which(named or NAME)
    if path is None:
        return None, f"there is no {named}" if named else f"{NAME} is not on the PATH"
    done = programs.run([path, "--version"], seconds=_VERSION_SECONDS)
    line = programs.last_line(done)
    version = re.search(r"[0-9]+\.[0-9.]+", line)
    if done.returncode or version is None:
        return None, f"{path} does not run: {line}"
    return Path(path), f"{NAME} {version[0]}"


def hint(reason: str) -> str:
    """Return how to install perf_analyzer, or the library that the reason of its failure names as missing."""
    if "libcudart" in reason:
        brings = "pip install nvidia-cuda-runtime-cu12 brings libcudart; add its folder lib to LD_LIBRARY_PATH"
    elif "libb64" in reason:
        brings = "apt-get install libb64-0d brings libb64"
    else:
        brings = "tritonclient's extra perf-analyzer brings perf_analyzer"
    return f"{brings}; --with own works without perf_analyzer"


def put(
    client: Client,
    model: ModelMetadata,
    requests: Sequence[InferRequest],
    *,
    program: Path,
    version: str,
    point: Point,
    settings: LoadSettings,
) -> LoadFigures:
    """Put one load on the server by perf_analyzer; return the load's figures together with the server's own times.

    perf_analyzer measures three windows, together about as many requests as fit into the duration, after a warm-up of
    its own. Raises StepError with perf_analyzer's error message.
    """
    batch = _rows_of(requests[0]) if model.max_batch_size else 1
    alike = [each for each in requests if not model.max_batch_size or _rows_of(each) == batch]
    with tempfile.TemporaryDirectory() as folder:
        data, report = Path(folder) / "data.json", Path(folder) / "report.csv"
        data.write_text(json.dumps({"data": [row for each in alike for row in _rows(model, each, batch)]}), "utf-8")
        expected = _expected_rate(client, model, alike[0], point) * settings.duration
        window = max(_FEWEST_REQUESTS, round(expected / _WINDOWS))
        command = [
            str(program), "-m", model.name, "-u", client.address.place, "-i", str(client.address.protocol),
            "-b", str(batch), "--input-data", str(data), "-f", str(report), "--verbose-csv",
            "--measurement-mode", "count_windows", "--measurement-request-count", str(window),
            "--stability-percentage", str(_STABILITY), *_load(point, settings),
        ]  # fmt: skip
        before = client.statistics()
        output = _run(command, timeout=_BASE_SECONDS + _DURATIONS * settings.duration + settings.timeout)
        after = client.statistics()
        return _figures(point, version, batch, report, output, server=between(model, before, after))


def _rows_of(request: InferRequest) -> int:
    return len(next(iter(request.arrays.values())))


def _expected_rate(client: Client, model: ModelMetadata, request: InferRequest, point: Point) -> float:
    """Return the requests per second to expect: one client's rate times the number of clients, at most one per CPU."""
    if point.rate:
        return point.rate
    send = client.prepare(model, request.arrays)
    send()
    start = perf_counter()
    send()
    return min(point.concurrency, os.cpu_count() or 1) / (perf_counter() - start)


def _load(point: Point, settings: LoadSettings) -> list[str]:
    if point.concurrency:
        return ["--concurrency-range", f"{point.concurrency}:{point.concurrency}:1"]
    return ["--request-rate-range", f"{point.rate:g}:{point.rate:g}:1", "--request-distribution", settings.arrivals]


def _run(command: list[str], *, timeout: float) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise StepError(f"{NAME} did not end within {timeout:g} s", hint="measure with --with own") from None
    if done.returncode:
        message = (done.stderr or done.stdout).partition("\nUsage: ")[0]  # the text after "Usage: " is the whole help
        lines = [line for line in message.splitlines() if line.strip()]
        raise StepError(f"{NAME} failed (exit {done.returncode})", lines[-_LAST_LINES:], "measure with --with own")
    return done.stdout


def _figures(
    point: Point, version: str, batch: int, report: Path, output: str, *, server: Mapping[str, ModelTimes]
) -> LoadFigures:
    """Return the figures of perf_analyzer's CSV report; the number of requests comes from the text `output`."""
    with report.open(newline="") as file:
        row = next(csv.DictReader(file))
    count = re.search(r"Request count: ([0-9]+)", output)
    requests = int(count[1]) if count else 0
    latency = {name: round(float(row[column]) / _MICROSECONDS_PER_MS, MS_DIGITS) for name, column in _FIGURES.items()}
    return LoadFigures(
        concurrency=point.concurrency or None,
        rate=point.rate or None,
        by=version,
        throughput=round(float(row["Inferences/Second"]) / batch, 3),
        requests=requests,
        latency=Latencies(**latency, requests=requests),
        errors=Errors(count=0, share=0.0, messages={}),  # perf_analyzer gives up at the first error
        client=NotMeasured(),
        server=server,
    )


def _rows(model: ModelMetadata, request: InferRequest, batch: int) -> list[dict[str, object]]:
    """Return the tensors of a request as perf_analyzer reads them: by row if the model has a batch axis."""
    tensors = [tensor for tensor in model.inputs if tensor.name in request.arrays]
    if not model.max_batch_size:
        return [{tensor.name: _content(tensor, request.arrays[tensor.name]) for tensor in tensors}]
    return [
        {tensor.name: _content(tensor, request.arrays[tensor.name][number]) for tensor in tensors}
        for number in range(batch)
    ]


def _content(tensor: TensorMetadata, array: np.ndarray) -> dict[str, object]:
    """Return one tensor as perf_analyzer reads it: UTF-8 texts as they are, other tensors as raw bytes in base64."""
    shape = list(array.shape)
    if tensor.datatype == "BYTES":
        with suppress(UnicodeDecodeError):
            return {"content": [text.decode() for text in array.ravel()], "shape": shape}
    raw = base64.b64encode(raw_bytes(tensor.datatype, array)).decode()
    return {"content": {"b64": raw}, "shape": shape}
