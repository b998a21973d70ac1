"""The script behind docs/measured.md: it prints a table of what ran, and nothing where nothing can run."""

import dataclasses
import importlib.util
import subprocess
import sys
from pathlib import Path

import gpu_ways as ways
import pytest

from engine.machine import cuda

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "gpu" / "measure.py"


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU here, and it would be measured")
def test_without_a_gpu_nothing_is_added_to_the_page():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("nothing was measured: no GPU")


def test_the_table_says_where_it_was_measured_and_what_was_left_out():
    """The numbers are made up here, and appear nowhere else."""
    spec = importlib.util.spec_from_file_location("measure", SCRIPT)
    measure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measure)
    row = {"ours": True, "shape": {"batch": 1, "sequence": 16}, "mean_ms": 3.0, "p50_ms": 2.0, "p95_ms": 4.0,
           "p99_ms": 5.0, "ratio_to": {"pytorch-fp16": 7.0}}  # fmt: skip
    bench = {"job": "bench", "artifact": "a", "report": {"gpu": {"sm_mhz": [1, 1], "steady": True}}}
    variant = {"recipe": "tensorrt-fp16", "bench": [row, {**row, "ours": False}], "size": 2_000_000,
            "validation": {"cosine": {"worst": 0.5}}, "steps": [bench]}  # fmt: skip
    text = measure.section([variant], ["tensorrt-rtx-fp16: tensorrt_rtx is not installed"], "Some GPU", "torch 1.")
    assert "## Some GPU" in text
    assert "| tensorrt-fp16 | 1 x 16 | 3.000 | 2.000 | 4.000 | 5.000 |  | 7.00 x | 0.500000 | 2.0 |" in text
    assert text.count("| tensorrt-fp16 |") == 1
    assert "tensorrt-fp16: 1 MHz throughout" in text
    assert "Left out: tensorrt-rtx-fp16: tensorrt_rtx is not installed." in text


def test_a_way_that_builds_nothing_for_the_gpu_is_left_out(monkeypatch):
    sizes = {field.name: 0 for field in dataclasses.fields(cuda.CudaDevice)} | {"name": "NVIDIA H100 80GB HBM3"}
    monkeypatch.setattr(cuda, "devices", lambda: (cuda.CudaDevice(**sizes),))
    monkeypatch.setattr(ways, "MODEL", "engine")
    assert ways.Way("tensorrt-rtx", "fp16").missing() == "tensorrt-rtx builds nothing for the H100 (SM90)"
