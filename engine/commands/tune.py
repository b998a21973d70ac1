"""Search for the fastest or the smallest model of a recipe under bounds, and show the front and the choice."""

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

_HEAD = "# Found by `recipe tune`"
"""How a file begins that `--write` may replace."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe tune`."""
    options.add_recipes(parser, many=False)
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument("--trials", metavar="N", type=amounts.positive, help="at most N trials")
    limits.add_argument(
        "--budget", metavar="TIME", type=amounts.duration, help="no further trial after so much work, as in 10m"
    )
    parser.add_argument(
        "--write", metavar="FILE", type=Path, help="write the chosen point as a recipe into the recipe's folder"
    )
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Search, print a line for each trial, then the front and the choice; after Ctrl-C those of the trials so far.

    Raises HardwareError, before the first trial, where the target's GPU is not here, and JudgementError where no trial
    keeps the bounds.
    """
    [recipe] = arguments.recipes
    if arguments.write is not None:
        _refuse_place(arguments.write, recipe)
    search = _search(arguments)
    search.on_row = lambda row: None if arguments.json else print(_line(row, search), flush=True)
    try:
        result = search.run()
    except KeyboardInterrupt:
        _print(search.result(), search.objective, as_json=arguments.json)
        raise
    _print(result, search.objective, as_json=arguments.json)
    if result.chosen is None:
        raise _without_choice(result, search)
    if arguments.write is not None:
        _write(arguments.write, result, search.objective, recipe)
    return Exit.OK


def _search(arguments: argparse.Namespace) -> Search:
    """Return the search of the one variant that is chosen. Raises UserError where it cannot begin."""
    from engine.recipe.tune import DEFAULT_TRIALS
    from engine.tuning.objective import Objective
    from engine.tuning.racing import Races
    from engine.tuning.search import Search
    from engine.tuning.space import Space
    from engine.tuning.trials import TrialBuilder

    [recipe] = arguments.recipes
    reading = options.reading(arguments)
    session = TrialBuilder(recipe, lambda _: None, **reading).session({})
    if len(session.variants) > 1:
        names = [variant.loaded.variant for variant in session.variants]
        first = names[0].split(",")
        hint = f"choose one: {' '.join(f'--only {each}' for each in first)}"
        raise UsageError(f"a search is of one variant, and {recipe} has {len(names)}", names, hint)
    [variant] = session.variants
    loaded = variant.loaded
    objective = Objective.of(loaded)
    waiting = [each.waits_for for each in session.findings() if each.waits_for is not None]
    session.lookup.store.leave()
    if waiting:
        what = f"a search measures on the target, and this machine has no {waiting[0]}"
        raise HardwareError(what, hint="run `recipe tune` on a machine with it; the store may be shared")
    given: Reading = {**reading, "set": (*arguments.set, *(f"{path}={value}" for path, value in objective.judged.items()))}
    tune = loaded.recipe.tune
    by_line = arguments.trials is not None or arguments.budget is not None
    budget = arguments.budget if by_line or tune is None else tune.budget
    most = arguments.trials if by_line or tune is None else tune.trials
    trials = Races(TrialBuilder(recipe, lambda _: None, **given))
    if most is None and budget is None:
        most = DEFAULT_TRIALS
    return Search(trials, Space.of(loaded, objective), objective, most, budget, loaded.recipe.name)


def _line(row: TrialRow, search: Search) -> str:
    """Return what is printed of a trial when it has ended."""
    ends = f" of {search.most}" if search.most is not None else ""
    return f"trial {row.number}{ends}: {row.name}: {', '.join(_figures(row, search.objective))}"


def _figures(row: TrialRow, objective: Objective) -> Iterator[str]:
    from engine.text import quantities
    from engine.tuning.objective import shown
    from engine.tuning.search import lead_in_words

    yield from (f"{'worst ' if name == 'cosine' else ''}{name} {value:.4f}" for name, value in row.accuracies.items())
    if row.size is not None:
        yield shown("size", row.size)
    if (value := objective.value(row)) is not None and objective.figure != "size":
        yield f"{objective.figure} {shown(objective.figure, value)}"
    if row.interval is not None:
        yield f"{lead_in_words(row)} as fast"
    if row.state != "validated":
        yield f"{row.state}{f' ({row.why})' if row.why else ''}"
    yield quantities.duration(row.seconds)


def _print(result: TuneResult, objective: Objective, *, as_json: bool) -> None:
    """Print the front, the choice and its reason; as JSON the whole result."""
    from engine.report import grid
    from engine.text import lists, quantities
    from engine.tuning.objective import shown
    from engine.tuning.search import lead_in_words

    if as_json:
        print(json.dumps(result.to_json(), indent=1))
        return
    spent = f"{lists.counted(len(result.trials), 'trial')}, {quantities.duration(result.seconds)} of work"
    refused = f"; {lists.counted(result.refused, 'point')} that the target cannot have" if result.refused else ""
    print(f"\n{result.recipe}: {result.objective}; {result.bounds or 'no bounds'}; {spent}{refused}")
    table = [("trial", "point", "accuracy", "size", objective.figure, "lead", "")]
    for row in (result.row(number) for number in result.front):
        value = objective.value(row)
        table.append((
            str(row.number), row.name,
            "" if row.loss is None else f"{1 - row.loss:.4f}",
            "" if row.size is None else shown("size", row.size),
            "" if value is None else shown(objective.figure, value),
            lead_in_words(row), "chosen" if row.number == result.chosen else "" if row.state == "validated" else row.state,
        ))  # fmt: skip
    if len(table) > 1:
        print("the front (no trial is better in accuracy, figure and size at once):")
        grid.show(table, [grid.RIGHT, grid.LEFT, *[grid.RIGHT] * 4], indent=2)
    if result.chosen is not None:
        row = result.row(result.chosen)
        print(f"chosen: trial {row.number}, {row.name}: {result.why}")
        print("  " + row.accuracy(objective.accuracy.get("cosine")))
        if row.number != result.finals[0].number:
            first = result.finals[0]
            print(f"  {first.name}: {', '.join(_figures(first, objective))}")
    for note in result.notes:
        print(f"warning: {note}")


def _without_choice(result: TuneResult, search: Search) -> JudgementError:
    """Return the error for a search in which no trial keeps the bounds, with the best value for each bound."""
    facts = list(search.objective.nearest(result.trials))
    failed = [row for row in result.trials if row.state == "failed"]
    facts += [f"{len(failed)} trials failed, the first: {failed[0].why}"] if failed else []
    return JudgementError(
        f"none of {len(result.trials)} trials keeps the bounds", facts, "loosen a bound of `tune.subject_to`, or widen `over`"
    )


def _refuse_place(path: Path, recipe: Path) -> None:
    """Raise UsageError for a file that cannot have the result: before the search, which may take long."""
    if path.resolve().parent != recipe.resolve().parent:
        hint = f"write {recipe.with_name(path.name)}: paths in a recipe begin at its folder"
        raise UsageError(f"{path} is not in the folder of {recipe}", hint=hint)
    if path.exists() and not path.read_text("utf-8", "replace").startswith(_HEAD):
        raise UsageError(f"{path} exists, and `recipe tune` has not written it", hint="choose another name")


def _write(path: Path, result: TuneResult, objective: Objective, recipe: Path) -> None:
    """Write the chosen point as a recipe without the section `tune`, with the figures that chose it as comments."""
    from engine.drafts.edited import edited

    row = result.row(result.chosen or 1)
    head = [
        f"{_HEAD.removeprefix('# ')} of {recipe.name}: {result.objective}; {result.bounds or 'no bounds'}.",
        f"Trial {row.number} of {len(result.trials)}: {', '.join(_figures(row, objective))}.",
        f"Why: {result.why}.",
        *(f"Warning: {note}." for note in result.notes),
    ]
    judged = {path: value for path, value in objective.judged.items()}
    text = edited(recipe, {**row.point, **judged}, dict.fromkeys(row.point, "found by the search"), head, ["tune"])
    path.write_text(text, "utf-8")
    print(f"written: {path}")
