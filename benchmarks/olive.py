"""Olive's first and cached runs, compared with the first and the no-op build of the same int8 MiniLM."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import recipe_program as program
from frontier import environments
from frontier.building import SCRIPTS
from frontier.subjects import SUBJECTS
from timing import Contender, Took, duration, in_turns, least, machine, median, ratio, table, times

OLIVE, OURS = "olive run", "recipe build --to quantize"
VERSIONS = "import importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in %r), sep=', ')"
PACKAGES = ("olive-ai", "torch", "transformers", "onnxruntime")


def main() -> None:
    """Run Olive and `recipe` in turns and print the table."""
    options = _options()
    try:
        olive = environments.python("olive", options.environments)
    except environments.AbsentError as error:
        print(table(["", "result"], [[OLIVE, str(error)]]))
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
    parser.add_argument("--environments", type=Path, default=environments.FOLDER, help="of other tools, kept")
    parser.add_argument("--first-runs", type=int, default=3, help="rounds from nothing (3)")
    parser.add_argument("--runs", type=int, default=9, help="rounds with all cached; over a second: 5 (9)")
    return parser.parse_args()


def _olive(python: Path, folder: Path) -> Contender:
    """Return Olive's workflow with the same conversions: export, fusion, dynamic int8 per channel."""
    folder.mkdir()
    given = {"kind": "text", "checkpoint": str(SUBJECTS["minilm"].path), "task": "feature-extraction"}
    (folder / "request.json").write_text(json.dumps({**given, "out": str(folder)}))
    return Contender(OLIVE, [str(python), str(SCRIPTS / "olive_model.py"), "request.json", "dynamic"], folder)


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
