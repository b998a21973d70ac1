"""Worker: a fresh process that opens contenders and times them in turns, or computes their answers.

`python -m frontier.worker REQUEST ANSWER`: REQUEST is a JSON file with `do`: "time" or "answer"; ANSWER is written.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from engine.kit.bench import interleaving
from engine.runtimes.recipes import IN_PROCESS
from frontier.contenders import Contender, Opened, opened
from frontier.load import Watch


def main(request: Path, answer: Path) -> None:
    """Do what the request names and write the answer."""
    given = json.loads(request.read_text())
    contenders = [Contender(**each) for each in given["contenders"]]
    if given["do"] == "time":
        answer.write_text(json.dumps(timed(contenders, given)))
    else:
        (contender,) = contenders
        arrays = answers(opened(contender, given["threads"]), Path(given["inputs"]))
        np.savez(answer, **arrays)


def timed(contenders: list[Contender], given: dict[str, Any]) -> dict[str, Any]:
    """Return for each shape the milliseconds of each contender, a list for each round, and the load by others.

    A contender that fails has its error instead.
    """
    clock = time.process_time if given["clock"] == "cpu" else time.perf_counter
    ready: dict[str, Opened] = {}
    failed: dict[str, str] = {}
    for each in contenders:
        try:
            ready[each.name] = opened(each, given["threads"])
        except Exception as error:  # noqa: BLE001 - one contender's failure must not end the contest
            failed[each.name] = _reason(error)
    shapes = {}
    for shape, file in given["shapes"].items():
        inputs = dict(np.load(file))
        turns, names = [], []
        for name, each in ready.items():
            try:
                call = each.prepare(inputs)
                call()
            except Exception as error:  # noqa: BLE001
                failed[f"{name} at {shape}"] = _reason(error)
                continue
            names.append(name)
            turns.append(interleaving.Contender(runtime=name, via=IN_PROCESS, ours=False, prepare=lambda _, c=call: c))
        share, rounds = given["seconds"] * len(turns), given["rounds"]
        budget = interleaving.Budget(seconds=share, warm_up=given["warm_up"] * len(turns), rounds=rounds)
        with Watch() as watch:
            seconds = interleaving.measure(turns, inputs, budget, clock=clock)
        shapes[shape] = {
            "others": watch.others,
            "ms": {
                name: [[value * 1e3 for value in values] for values in rounds]
                for name, rounds in zip(names, seconds, strict=True)
            },
        }
    return {"shapes": shapes, "failed": failed}


def answers(model: Opened, inputs: Path) -> dict[str, np.ndarray]:
    """Return the first output of the model for each numbered call in a file of inputs (`NUMBER/NAME` -> array)."""
    calls: dict[str, dict[str, np.ndarray]] = {}
    for key, array in np.load(inputs).items():
        number, name = key.split("/", 1)
        calls.setdefault(number, {})[name] = array
    return {number: next(iter(model.run(call).values())) for number, call in calls.items()}


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:300]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
