"""Builds one of this project's recipes and prints its latencies as Markdown: the tables of docs/measured.md.

    python benchmarks/end_to_end.py recipes/minilm_served.yaml --into docs/measured.md
    python benchmarks/end_to_end.py recipes/efficientnetv2.yaml --seeded tf_efficientnetv2_s --into docs/measured.md

`--seeded` replaces the model on the hub by a timm model of the same architecture with random weights from a fixed seed.
Random weights have the latencies of the real weights; their answers mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import into_readme
import recipe_program as program
import timing

_NOISY = 0.1
"""From this noise on, `recipe` itself warns that the machine was busy."""
HEADER = ("recipe", "shape", "runtime", "via", "mean ms", "p50", "p95", "p99", "ours is faster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--only", help="choose variants, as in `recipe build`", default=None)
    parser.add_argument("--seeded", metavar="ARCHITECTURE")
    parser.add_argument("--into", type=Path, help="a page with a mark for this recipe (default: print)")
    options = parser.parse_args()
    words = [options.recipe, *(["--only", options.only] if options.only else [])]
    with tempfile.TemporaryDirectory() as folder:
        program.project(Path(folder) / "project")
        with seeded(options.seeded, Path(folder)) if options.seeded else contextlib.nullcontext({}) as more:
            shown = measured(Path(folder) / "project", words, more)
    text = f"{table(shown)}\n\n{conditions(shown, words, options.seeded)}"
    if options.into:
        into_readme.put(options.into, Path(options.recipe).name, text)
    else:
        print(text)


def measured(project: Path, words: list[str], more: Mapping[str, str]) -> list[dict[str, Any]]:
    """Build a recipe and return the measured variants from `recipe show --json`."""
    environment = {**program.environment(), **more}
    done = subprocess.run([*program.command(), "build", *words], cwd=project, env=environment, check=False)
    if done.returncode not in (0, 3):  # 3: some jobs wait for other hardware
        sys.exit(f"the build failed with exit code {done.returncode}")
    show = subprocess.run(
        [*program.command(), "show", *words, "--json"], cwd=project, env=environment, stdout=subprocess.PIPE, check=True
    )
    return [each for each in json.loads(show.stdout) if each["bench"]]


@contextlib.contextmanager
def seeded(architecture: str, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a timm model with seeded weights from a fake hub; yield the environment variables that select that hub."""
    sys.path[:0] = [str(program.ROOT / "tests" / "support")]
    import fake_hub
    import timm_here

    folders = timm_here.folders(Path(tempfile.gettempdir()) / "recipe-timm")
    with timm_here.importable(folders), fake_hub.FakeHub() as hub:
        checkpoint = timm_here.checkpoint(folder / "model", architecture, size=384)
        files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
        hub.repositories[f"timm/{architecture}.in21k_ft_in1k"] = {fake_hub.FIRST: files}
        path = os.pathsep.join([*folders, *filter(None, [program.environment().get("PYTHONPATH")])])
        yield {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(folder / "hub"), "PYTHONPATH": path}


def table(shown: list[dict[str, Any]]) -> str:
    """Return the Markdown table with a row for each contender."""
    rows = []
    for variant in shown:
        for row in variant["bench"]:
            shape = " x ".join(f"{extent}" for extent in row["shape"].values())
            times = [f"{row[name]:.3f}" for name in ("mean_ms", "p50_ms", "p95_ms", "p99_ms")]
            name = f"**{row['runtime']}**" if row["ours"] else row["runtime"]
            rows.append([variant["recipe"], shape, name, row["via"], *times, _faster(variant["bench"], row)])
    return timing.table(HEADER, rows)


def conditions(shown: list[dict[str, Any]], words: list[str], architecture: str | None) -> str:
    """Return a line about the build, the number of runs, the server, the noise and the machine."""
    reports = [step["report"] for each in shown for step in each["steps"] if step["job"] == "bench"]
    noise = max(row["noise"] for each in shown for row in each["bench"])
    runs = [row["runs"] for each in shown for row in each["bench"]]
    threads = f"{reports[0]['threads']} thread{'s' if reports[0]['threads'] != 1 else ''}"
    lines = [f"`recipe build {' '.join(words)}`, {threads}, {min(runs)} to {max(runs)} runs a row."]
    if architecture:
        lines.append(f"The weights of {architecture} are random with a fixed seed, so nothing was downloaded.")
    server = reports[0].get("server")
    if server:
        aside = ", with a stand-in in Python for its ONNX Runtime backend" if server["stand_in"] else ""
        lines.append(f"The server is Triton {server['version']} ({server['kind']}{aside});")
        lines.append(f"clients call its model {server['asked']}.")
    spread = "half the width of the 95 % confidence interval of the median latency, as a share of the median"
    lines.append(f"The noise is at most {noise:.0%} ({spread}). {timing.machine()}.")
    if noise > _NOISY:
        lines.append("**The machine was busy, so these numbers are not reliable.**")
    return " ".join(lines)


def _faster(rows: list[dict[str, Any]], rival: dict[str, Any]) -> str:
    """Return how many times longer a rival takes than our package when both are called in the same way."""
    if rival["ours"]:
        return ""
    same = (row for row in rows if row["ours"] and (row["shape"], row["via"]) == (rival["shape"], rival["via"]))
    ratio = next(same, {"ratio_to": {}})["ratio_to"].get(rival["runtime"])
    return timing.times(ratio) if ratio else ""


if __name__ == "__main__":
    main()
