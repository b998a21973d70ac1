"""Search for the fastest or smallest model of a recipe under bounds; show the best trials, and write the chosen one."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts, options
from engine.errors import Exit, HardwareError, JudgementError, UsageError

if TYPE_CHECKING:
    from engine.builder.selection import Reading
    from engine.tuning.objective import Objective
    from engine.tuning.result import TrialRow, TuneResult
    from engine.tuning.search import Search

_TRIALS = 40
"""The most trials of a recipe that says neither `trials` nor `budget`."""
_HEAD = "Found by `recipe tune`"
"""How the first comment begins of a file that `--write` may replace."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe tune`."""
    options.add_recipes(parser, many=False)
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--trials", metavar="N", type=amounts.positive, help="at most N trials")
    limits.add_argument(
        "--budget", metavar="TIME", type=amounts.duration, help="no further trial after so much work, as in 10m"
    )
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the chosen point as a recipe")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Search, print a line for each trial, then the front and the choice; after Ctrl-C those of the trials so far.

    Raises HardwareError, before the first trial, where the target's GPU is not here, and JudgementError where no trial
    keeps the bounds.
    """
    if arguments.write is not None:
        _refuse_place(arguments.write, arguments.recipes[0])
    search = _search(arguments)
    if not arguments.json:
        search.on_row = lambda row: print(_line(row, search), flush=True)
    try:
        result = search.run()
    except KeyboardInterrupt:
        _print(search.result(), search.objective, as_json=arguments.json)
        raise
    _print(result, search.objective, as_json=arguments.json)
    if result.chosen is None:
        facts = [*search.objective.nearest(result.trials), *([result.why] if result.why else [])]
        facts += [f"trial {row.number} failed: {row.why}" for row in result.trials if row.state == "failed"][:1]
        hint = "loosen a bound of `tune.subject_to`, or let `tune.over` name more values"
        raise JudgementError(f"none of {len(result.trials)} trials keeps the bounds", facts, hint)
    if arguments.write is not None:
        _write(arguments, result, search.objective)
    return Exit.OK


def _search(arguments: argparse.Namespace) -> Search:
    """Return the search of the variant that is chosen. Raises UserError where it cannot begin."""
    from engine.tuning.objective import Objective
    from engine.tuning.racing import Races
    from engine.tuning.search import Search
    from engine.tuning.space import Space
    from engine.tuning.trials import TrialBuilder

    [recipe] = arguments.recipes
    reading = options.reading(arguments)
    session = TrialBuilder(recipe, lambda _: None, **reading).session({})
    [variant] = session.variants
    objective = Objective.of(variant.loaded)
    waiting = [each.waits_for for each in session.findings() if each.waits_for is not None]
    session.lookup.store.leave()
    if waiting:
        what = f"a search measures on the target, and this machine has no {waiting[0]}"
        raise HardwareError(what, hint="search on a machine with it")
    bounds = (f"{path}={value}" for path, value in objective.judged.items())
    given: Reading = {**reading, "set": (*arguments.set, *bounds)}
    most, budget = arguments.trials, arguments.budget
    if (tune := variant.loaded.recipe.tune) is not None and most is None and budget is None:
        most, budget = tune.trials or (None if tune.budget else _TRIALS), tune.budget
    trials = Races(TrialBuilder(recipe, lambda _: None, **given))
    return Search(variant.name, trials, Space.of(variant.loaded, objective), objective, most, budget)


def _line(row: TrialRow, search: Search) -> str:
    """Return what is printed of a trial when it has ended."""
    of_all = "" if search.most is None else f" of {search.most}"
    return f"trial {row.number}{of_all}: {row.name}: {', '.join(_figures(row, search.objective))}"


def _figures(row: TrialRow, objective: Objective) -> Iterator[str]:
    from engine.text import quantities
    from engine.tuning.objective import shown

    yield from (f"{'worst ' if name == 'cosine' else ''}{name} {value:.4f}" for name, value in row.accuracies.items())
    for figure in dict.fromkeys((objective.figure, "size")):
        if value := row.value(figure):
            yield f"{'' if figure == 'size' else f'{figure} '}{shown(figure, value)}"
    if row.interval is not None:
        yield f"{row.lead_in_words} as fast"
    if row.state != "validated":
        yield f"{row.state}: {row.why}" if row.state == "failed" else row.state
    yield quantities.duration(row.seconds)


def _print(result: TuneResult, objective: Objective, *, as_json: bool) -> None:
    """Print the front, the choice and its reason; as JSON the whole result."""
    from engine.report import grid
    from engine.text import lists, quantities
    from engine.tuning.objective import shown

    if as_json:
        print(json.dumps(result.to_json(), indent=1))
        return
    spent = f"{lists.counted(len(result.trials), 'trial')}, {quantities.duration(result.seconds)} of work"
    refused = f"; the target cannot have {lists.counted(len(result.refused), 'point')}" if result.refused else ""
    print(f"{result.recipe}: {result.objective}; {result.bounds}; {spent}{refused}")
    figures = dict.fromkeys(("size", "p95_ms", objective.figure))
    table = [("trial", "accuracy", *figures, "lead", "", "point")]
    for row in map(result.row, result.front):
        values = (shown(figure, row.value(figure)) for figure in figures)
        state = "chosen" if row.number == result.chosen else "" if row.state == "validated" else row.state
        table.append((str(row.number), f"{1 - row.loss:.4f}", *values, row.lead_in_words, state, row.name))
    if result.front:
        print("the front: no trial is better in accuracy, speed and size at once")
        grid.show(table, [grid.RIGHT] * (len(figures) + 3), indent=2)
    for number in dict.fromkeys(() if result.chosen is None else (result.chosen, result.finals[0].number)):
        row = result.row(number)
        what = f"chosen: {row.name}: {result.why}" if number == result.chosen else f"compared with {row.name}:"
        print(f"{what}\n  {', '.join(_figures(row, objective))}\n  {row.accuracy(objective.accuracy.get('cosine'))}")
    for note in result.notes:
        print(f"warning: {note}")


def _refuse_place(path: Path, recipe: Path) -> None:
    """Raise UsageError for a file that cannot have the result: before the search, which may take long."""
    if path.resolve().parent != recipe.resolve().parent:
        hint = f"--write {recipe.with_name(path.name)}: paths in a recipe begin at its folder"
        raise UsageError(f"{path} is not in the folder of {recipe}", hint=hint)
    if path.exists() and _HEAD not in path.read_text("utf-8", "replace").partition("\n")[0]:
        raise UsageError(f"{path} exists, and `recipe tune` has not written it", hint="choose another name")


def _write(arguments: argparse.Namespace, result: TuneResult, objective: Objective) -> None:
    """Write the chosen point as a recipe without the section `tune`, with the figures that chose it as comments."""
    from engine.drafts.edited import edited
    from engine.recipe.node import plain
    from engine.recipe.outline import dotted
    from engine.recipe.overrides import SET, assignments

    [recipe] = arguments.recipes
    row = result.row(result.chosen or 1)
    head = [
        f"{_HEAD} of {recipe.name}: {result.objective}; {result.bounds}.",
        f"Trial {row.number} of {len(result.trials)}: {', '.join(_figures(row, objective))}.",
        f"Why: {result.why}.",
        f"Accuracy: {row.accuracy(objective.accuracy.get('cosine'))}.",
        *(f"Warning: {note}." for note in result.notes),
    ]
    given = {dotted(each.path): plain(each.value) for each in assignments(SET, arguments.set)}
    notes = dict.fromkeys(row.point, "found by the search")
    changes = {**given, **objective.judged, **row.point}
    text = edited(recipe, changes, notes, head, ["tune"], only=arguments.only, allow=arguments.allow_path)
    arguments.write.write_text(text, "utf-8")
    print(f"written: {arguments.write}")
