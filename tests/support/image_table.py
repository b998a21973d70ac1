"""The table of image models: tries the models that it lacks, keeps each trial, and writes docs/models.md.

    PYTHONPATH=tests/support .venv/bin/python tests/support/image_table.py [--again NAME ...] [--workers N]

A run goes on where the last one stopped. It ends with 1 if a model answers wrongly, or fails without a plain error.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import image_page
from image_trials import Trial, trial

FILE = Path(__file__).with_name("image_table.json")
PAGE = Path(__file__).parents[2] / "docs" / "models.md"
ALLOWED = ("built", "refused", "untried")
SUBJECTS = {each.name: each for section in image_page.SECTIONS for each in section.subjects}


def main() -> int:
    """Try what the table lacks, and the models that are named; write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--again", nargs="*", default=[], metavar="NAME", help="models to try again; `all` for each")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="how many models are tried at a time")
    options = parser.parse_args()
    again = set(options.again)
    if unknown := again - {"all", *SUBJECTS}:
        parser.error(f"no such model: {', '.join(sorted(unknown))}")
    trials = {} if "all" in again else read()
    waiting = [name for name in SUBJECTS if name in again or _waits(name, trials)]
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(_trial, name) for name in waiting]
        for done, future in enumerate(as_completed(running), 1):
            row = future.result()
            trials[row.name] = row
            write(trials[each] for each in SUBJECTS if each in trials)
            print(f"{done}/{len(waiting)} {_line(row)}", flush=True)
    PAGE.write_text(image_page.page(read(), versions()), encoding="utf-8")
    return int(any(each.verdict not in ALLOWED for each in trials.values()))


def _trial(name: str) -> Trial:
    """Try a model in a process of the pool, without the progress bars of transformers."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    return trial(SUBJECTS[name])


def _waits(name: str, trials: Mapping[str, Trial]) -> bool:
    """Tell whether a model has no trial, or could not be tried on the machine before, and can be on this one."""
    return name not in trials or (trials[name].verdict == "untried" and not SUBJECTS[name].missing)


def read(file: Path = FILE) -> dict[str, Trial]:
    """Return the trials of the table by the names of their models; none where there is no table."""
    if not file.is_file():
        return {}
    return {fields["name"]: Trial(**fields) for fields in json.loads(file.read_text("utf-8"))["trials"]}


def versions(file: Path = FILE) -> dict[str, str]:
    """Return the versions of the libraries that the last trial compared with."""
    return dict(json.loads(file.read_text("utf-8"))["versions"])


def write(trials: Iterable[Trial], file: Path = FILE) -> None:
    """Replace the table: a run that is ended leaves a whole one."""
    compared = {name: version(name) for name in ("transformers", "onnxruntime")}
    scratch = file.with_suffix(".new")
    content = {"versions": compared, "trials": [asdict(each) for each in trials]}
    scratch.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(scratch, file)


def _line(row: Trial) -> str:
    return " ".join(filter(None, (row.name, row.verdict, image_page.number(row), row.at, row.reason)))


if __name__ == "__main__":
    sys.exit(main())
