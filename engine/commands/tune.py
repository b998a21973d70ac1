"""Search for the fastest or smallest model of a recipe under bounds; show the best trials, and write the chosen one."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit, HardwareError, JudgementError

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.tuning.objective import Objective
    from engine.tuning.result import TuneResult
    from engine.tuning.search import Search

_TRIALS = 40
"""The most trials of a recipe that says neither `trials` nor `budget`."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe tune`."""
    options.add_recipes(parser, many=False)
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the chosen point as a recipe, one variant")
    parser.add_argument("--report", metavar="FILE", type=Path, help="write the trials as a page for a browser")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Search, print a line for each trial, then the front and the choice; after Ctrl-C those of the trials so far.

    Raises HardwareError, before the first trial, where the target's GPU is not here, and JudgementError where no trial
    keeps the bounds.
    """
    from engine.drafts import edited

    [recipe] = arguments.recipes
    if arguments.write is not None:
        edited.refuse_place(arguments.write, recipe, arguments.allow_path)
    search = _search(arguments)
    out = sys.stderr if arguments.json else sys.stdout
    search.on_row = lambda row: print(f"trial {row.number}: {row.in_words}", file=out, flush=True)
    try:
        result = search.run()
    except KeyboardInterrupt:
        _show(arguments, search.result(interrupted=True))
        raise
    _show(arguments, result)
    if result.chosen is None:
        failed = [f"trial {row.number} failed: {row.why}" for row in result.trials if row.state == "failed"]
        facts = [*search.objective.nearest(result.trials), *([result.why] if result.why else []), *failed[:1]]
        hint = "loosen a bound of `tune.subject_to`, or let `tune.over` name more values"
        raise JudgementError(f"none of {len(result.trials)} trials keeps the bounds", facts, hint)
    if arguments.write is not None:
        text = _written(arguments, result, search.objective)
        edited.write(text, arguments.write, recipe, arguments.allow_path)
    return Exit.OK


def _search(arguments: argparse.Namespace) -> Search:
    """Return the search of the variant that is chosen. Raises UserError where it cannot begin."""
    from engine import api
    from engine.tuning.objective import Objective
    from engine.tuning.search import Search
    from engine.tuning.space import Space
    from engine.tuning.trials import VALIDATE, TrialBuilder

    [path] = arguments.recipes
    reading: Reading = {**options.reading(arguments), "to": (VALIDATE,)}
    session = TrialBuilder(path, lambda _: None, **reading).session({})
    [variant] = session.variants
    recipe = variant.loaded.recipe
    if recipe.tune is None:
        hint = "add `tune: {minimize: {p95_ms: {batch: 1, sequence: 128}}, subject_to: {cosine: 0.99}}`"
        raise variant.loaded.error("the section `tune` is missing or empty", "tune", hint=hint)
    api.check(path, **reading)
    waits_for = next((each.waits_for for each in session.findings() if each.waits_for is not None), None)
    session.lookup.store.leave()
    if waits_for is not None:
        what = f"a search measures on the target, and this machine has no {waits_for}"
        raise HardwareError(what, hint="search on a machine with it")
    objective = Objective.of(recipe, recipe.tune)
    bounds = (f"{field}={value}" for field, value in objective.judged.items())
    given: Reading = {**reading, "set": (*arguments.set, *bounds)}
    budget = recipe.tune.budget or math.inf
    most = recipe.tune.trials or (_TRIALS if math.isinf(budget) else math.inf)
    trials = TrialBuilder(path, lambda _: None, **given)
    return Search(variant.name, trials, Space.of(recipe, objective), objective, most, budget)


def _show(arguments: argparse.Namespace, result: TuneResult) -> None:
    """Print the front, the choice and its reason, or as JSON the whole result; write the page."""
    from engine.report import grid
    from engine.report.page import search as page
    from engine.text import lists, quantities
    from engine.tuning.result import in_words

    if arguments.report is not None:
        page.write(result, arguments.report)
    if arguments.json:
        print(json.dumps(result.to_json(), indent=1))
        return
    spent = f"{lists.counted(len(result.trials), 'trial')}, {quantities.duration(result.seconds)} of work"
    print(f"{result.recipe}: {result.objective}; {result.bounds}; {spent}")
    for why, many in Counter(each["why"] for each in result.refused).items():
        point = next(in_words(each["point"]) for each in result.refused if each["why"] == why)
        print(f"no trial: {point}{f' and {many - 1} more' if many > 1 else ''}: {why}")
    rows = [result.row(number) for number in result.front]
    names = dict.fromkeys(name for row in rows for name in row.cells)
    if rows:
        print("the front: the chosen trial, and those that no other one beats in accuracy, speed and size at once")
        table = [(str(row.number), *(row.cells.get(name, "") for name in names), row.name) for row in rows]
        grid.show([("trial", *names, "point"), *table], [grid.RIGHT] * (len(names) + 1), indent=2)
    if result.chosen is not None:
        print(f"chosen: trial {result.chosen}, {result.row(result.chosen).name}: {result.why}")
    for note in result.notes:
        print(f"note: {note}")


def _written(arguments: argparse.Namespace, result: TuneResult, objective: Objective) -> str:
    """Return the recipe at the chosen point without the section `tune`, with the figures that chose it as comments."""
    from engine.drafts import edited

    [recipe] = arguments.recipes
    row = result.row(result.chosen or 1)
    head = [f"Found by `recipe tune` of {recipe.name}: {result.objective}; {result.bounds}."]
    head += [f"Trial {row.number} of {len(result.trials)}, {row.in_words}.", f"Chosen: {result.why}.", *result.notes]
    changes = {**objective.judged, **row.point, "tune": None}
    return edited.edited(recipe, changes, head, set=arguments.set, only=arguments.only, allow=arguments.allow_path)
