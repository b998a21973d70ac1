"""The time of `recipe check` for recipes that it refuses: whole processes, one recipe of the tests' table each."""

from __future__ import annotations

import argparse
import runpy
import shlex
import statistics
import tempfile
from pathlib import Path

import recipe_program as program
from timing import Contender, duration, in_turns, machine, once

TABLE = Path(__file__).resolve().parent.parent / "tests" / "feasibility" / "test_combinations.py"
REFUSED = 2
"""The exit code of a refused recipe."""


def main() -> None:
    """Run each refused recipe in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds over all recipes (5)")
    parser.add_argument("--goal", type=float, default=0.3, help="the largest median that is meant, in seconds (0.3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pyproject.toml").touch()
        contenders = [_contender(folder, number, row) for number, row in enumerate(_rows())]
        for contender in contenders[:2]:
            once(contender)  # Python now writes its bytecode files
        results = in_turns(contenders, options.runs)
    medians = sorted((statistics.median(each.seconds for each in took), name) for name, took in results.items())
    busy = statistics.median(each.cpu_seconds for took in results.values() for each in took)
    middle, (slowest, which) = statistics.median(seconds for seconds, _ in medians), medians[-1]
    print(f"{len(medians)} refused recipes: median {duration(middle)}, CPU time {duration(busy)}")
    print(f"slowest: {duration(slowest)} ({which}); above {duration(options.goal)}: ", end="")
    print(sum(seconds > options.goal for seconds, _ in medians))
    print(f"\nThe times are medians of {options.runs} rounds in turns. {machine()}; {program.described()}.")


def _rows() -> list[tuple[str, str]]:
    """Return the expected error and the recipe of each row that the tests refuse."""
    rows = runpy.run_path(str(TABLE))["REFUSED"]
    return [(f"{row[2]}, {number}", row[1].replace("»", "")) for number, row in enumerate(rows)]


def _contender(folder: Path, number: int, row: tuple[str, str]) -> Contender:
    name, text = row
    place = folder / f"refused_{number}.yaml"
    place.write_text(text)
    words = shlex.join([*program.command(), "check", str(place)])
    # A benchmark ends at a command that fails, so the shell turns the refusal into success, and all else into a fault.
    script = f"{words}; status=$?; [ $status -eq {REFUSED} ]"
    return Contender(name, ["sh", "-c", script], folder, program.environment())


if __name__ == "__main__":
    main()
