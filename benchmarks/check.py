"""The CPU time of `recipe check` for the MiniLM recipe, in this checkout and in other checkouts of the program."""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path

import recipe_program as program
from timing import Contender, Took, duration, in_turns, machine, once, table, times

OURS = "here"


def main() -> None:
    """Run the checks in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="rounds (15)")
    parser.add_argument(
        "--other", type=Path, metavar="RECIPE", action="append", default=[], help="the `recipe` of another checkout"
    )
    options = parser.parse_args()
    folder = Path(__file__).resolve().parent.parent
    words = ["check", program.RECIPE]
    contenders = [Contender(OURS, [*program.command(), *words], folder, program.environment())]
    others = [Contender(str(each), [str(each.absolute()), *words], folder, dict(os.environ)) for each in options.other]
    contenders += others
    for contender in contenders:
        once(contender)  # Python now writes its bytecode files
    results = in_turns(contenders, options.runs)
    rows = [[name, duration(_busy(took)), times(_busy(results[OURS]) / _busy(took))] for name, took in results.items()]
    print(table(["recipe check", "CPU time", "here takes of it"], rows))
    print(f"\nThe times are medians of {options.runs} rounds in turns. {machine()}; {program.described()}.")


def _busy(took: list[Took]) -> float:
    return statistics.median(each.cpu_seconds for each in took)


if __name__ == "__main__":
    main()
