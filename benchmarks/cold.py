"""A cold build of the MiniLM recipe against one plain script that calls the same tools in the same order."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median as middle

import recipe_program as program
from timing import Contender, Took, cpu, duration, in_turns, least, machine, median, peak, ratio, ratios, table, times

HERE = Path(__file__).resolve().parent
SCRIPT = "plain script"
OURS = "recipe build"
Seconds = Mapping[str, float]
"""Seconds of each step, by the step's name."""


def main() -> None:
    """Run script and build in turns and print the tables."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch).resolve()
        program.project(place / "ours")
        _refuse_other_options(place)
        script, ours = _script(place), _ours(place, options.build)
        _warm_up(place)
        results = in_turns([script, ours], options.runs, slow_runs=options.runs)
        same = _contents(place / "script" / "package") == _contents(place / "ours" / "build" / "minilm")
    _print(results, same=same)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds of about a minute each (5)")
    parser.add_argument("--build", default=[], nargs=argparse.REMAINDER, help="more words for `recipe build`: -j 1")
    return parser.parse_args()


def _script(place: Path) -> Contender:
    samples = place / "ours" / "recipes" / "samples" / "sentences.jsonl"
    return Contender(
        SCRIPT,
        [sys.executable, str(HERE / "plain_script.py"), str(samples), str(place / "script")],
        place / "ours",
        program.environment(),
        before=lambda: shutil.rmtree(place / "script", ignore_errors=True),
    )


def _ours(place: Path, more: list[str]) -> Contender:
    folder = place / "ours"

    def forget() -> None:
        for name in ("cache", "build"):
            shutil.rmtree(folder / name, ignore_errors=True)

    command = [*program.command(), "build", program.RECIPE, "--json", *more]
    return Contender(OURS, command, folder, program.environment(), before=forget)


def _refuse_other_options(place: Path) -> None:
    """End with an error if the script's options differ from the options of the recipe's steps."""
    code = (
        "import sys, engine; sys.path.insert(0, sys.argv[1]); import plain_script\n"
        "from pathlib import Path\n"
        "[variant] = engine.plan([sys.argv[2]])\n"
        "planned = {job.name: job.step for job in variant.jobs}\n"
        "ours = plain_script.steps(Path(sys.argv[3]))\n"
        "sys.exit([f'{n}: {planned.get(n)!r} / {ours.get(n)!r}' for n in {**planned, **ours} "
        "if planned.get(n) != ours.get(n)] or 0)"
    )
    folder = place / "ours"
    samples = folder / "recipes" / "samples" / "sentences.jsonl"
    command = [sys.executable, "-c", code, str(HERE), program.RECIPE, str(samples)]
    done = subprocess.run(
        command, cwd=folder, env=program.environment(), stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"plain_script.py does not do what the recipe asks for: {done.stderr.strip()}")


def _warm_up(place: Path) -> None:
    """Import all libraries once, so that the first round does not wait for the disk."""
    code = "import torch, transformers, onnxruntime, onnx, sympy, tritonclient.grpc"
    subprocess.run([sys.executable, "-c", code], cwd=place, check=True)


def _script_steps(output: bytes) -> Seconds:
    events = [json.loads(line) for line in output.splitlines() if line.startswith(b'{"step"')]
    return {each["step"]: each["seconds"] for each in events}


def _our_steps(output: bytes) -> Seconds:
    return {event["job"]: event["seconds"] for event in program.events(output) if event["event"] == "end"}


def _range(took: list[Took], base: list[Took]) -> str:
    each = ratios(took, base)
    return f"{times(each[0])} to {times(each[-1])}"


def _by_step(took: Took, who: str) -> dict[str, float]:
    """Return the seconds of each step of a run, and their sums."""
    steps = dict(_script_steps(took.output) if who == SCRIPT else _our_steps(took.output))
    return {
        **steps,
        "all steps": sum(steps.values()),
        "the whole process": took.seconds,
        "the same but for bench": took.seconds - steps["bench"],
    }


def _contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _print(results: dict[str, list[Took]], *, same: bool) -> None:
    rows = [
        [
            who,
            duration(median(took)),
            duration(least(took)),
            times(ratio(took, results[SCRIPT])),
            _range(took, results[SCRIPT]),
            cpu(took),
            peak(took),
            str(len(took)),
        ]
        for who, took in results.items()
    ]
    header = ["cold", "median", "least", "of the script", "by round", "all CPUs", "largest process", "runs"]
    print(table(header, rows))
    each = {who: [_by_step(run, who) for run in took] for who, took in results.items()}
    spent = {who: {step: middle(run[step] for run in runs) for step in runs[0]} for who, runs in each.items()}
    rows = [[step, f"{seconds:.2f} s", f"{spent[OURS][step]:.2f} s"] for step, seconds in spent[SCRIPT].items()]
    rows[-1][-1] += f" ({times(spent[OURS]['the same but for bench'] / spent[SCRIPT]['the same but for bench'])})"
    print()
    print(table(["medians by step", SCRIPT, OURS], rows))
    alike = "the same bytes" if same else "OTHER BYTES"
    print(f"\nThe packages of the script and of `recipe build` hold {alike}. {machine()}; {program.described()}.")


if __name__ == "__main__":
    os.environ.setdefault("CI", "true")  # print the same text on a terminal as in a log
    main()
