"""Show the results of a build: artifacts, sizes, accuracy, latencies; or show the passport of a compiled model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit, UsageError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.api import Session, Summary
    from engine.runtimes.inductor.passport import Pt2Passport
    from engine.runtimes.tensorrt.passport import Passport
    from engine.store.record import Record

_PASSPORT = "passport.json"
_PT2 = ".pt2"
_ENGINES = (".plan", _PT2)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe show`."""
    options.add_recipes(parser, about="a recipe's YAML file, or a compiled model: its .plan or .pt2 file or its folder")
    parser.add_argument(
        "--provenance", action="store_true", help="what made each artifact, from what; with --json as signed envelopes"
    )
    form = parser.add_mutually_exclusive_group()
    options.add_json(form)
    form.add_argument("--markdown", action="store_true", help="a table for a pull request: a row for each variant")
    form.add_argument("--csv", action="store_true", help="the same table for a spreadsheet, with all digits")


def run(arguments: argparse.Namespace) -> Exit:
    """Print the last build of a variant, a table of several variants, or the passport of each engine."""
    if arguments.provenance and (arguments.markdown or arguments.csv):
        raise UsageError("--provenance is text or --json", hint="leave --markdown and --csv out")
    if arguments.provenance:
        return _show_provenance(arguments)
    engines = [path for path in arguments.recipes if path.suffix in _ENGINES or (path / _PASSPORT).is_file()]
    if not engines:
        return _show_recipes(arguments)
    if len(engines) < len(arguments.recipes):
        raise UsageError(
            "one command cannot show recipes and engines",
            hint="run two commands: `recipe show RECIPE`, `recipe show ENGINE`",
        )
    if arguments.markdown or arguments.csv:
        raise UsageError("a passport is text or --json", hint="leave --markdown and --csv out")
    return _show_engines(engines, as_json=arguments.json)


def _show_engines(paths: Sequence[Path], *, as_json: bool) -> Exit:
    from engine.report import passport

    passports = {path: _passport(path) for path in paths}
    if as_json:
        fields = [{"engine": str(path), **loaded.model_dump(mode="json")} for path, loaded in passports.items()]
        print(json.dumps(fields, ensure_ascii=False, indent=1))
        return Exit.OK
    for path, loaded in passports.items():
        print(f"{path}\n{passport.text(loaded)}", end="")
    return Exit.OK


def _passport(path: Path) -> Passport | Pt2Passport:
    """Return the passport of a compiled model. Raises StepError where the model's file is not the passport's."""
    from engine.runtimes.inductor import passport as compiled
    from engine.runtimes.tensorrt import loading, passport

    if path.suffix == _PT2 or (path / compiled.MODEL).is_file():
        return compiled.load(path)
    loaded = passport.load(path)
    loading.refuse_other_bytes(path, loaded)
    return loaded


def _show_recipes(arguments: argparse.Namespace) -> Exit:
    from engine import api
    from engine.builder.recipe_check import not_verified
    from engine.report import grid
    from engine.report.table import table

    session = api.session(arguments.recipes, **options.reading(arguments))
    summaries = session.summaries()
    if arguments.json:
        print(json.dumps([summary.to_json() for summary in summaries], ensure_ascii=False, indent=1))
        return Exit.OK
    if len(summaries) > 1 or arguments.markdown or arguments.csv:
        form = "markdown" if arguments.markdown else "csv" if arguments.csv else "text"
        return _show_table(session, summaries, form=form)
    for summary in summaries:
        print(table(summary), end="")
        for about in () if summary.facts is None else summary.facts.licenses:
            print(f"  licence of the {about.role}: {about.license}")
        rows = [_row(job.name, summary.records.get(job.name)) for job in summary.variant.jobs]
        grid.show(rows, [grid.LEFT, *[grid.RIGHT] * 4], indent=2)
        if unknown := not_verified(summary.variant):
            print(f"  warning: not verified: {unknown}")
    return Exit.OK


def _show_table(session: Session, summaries: Sequence[Summary], *, form: str) -> Exit:
    from engine.builder.recipe_check import not_verified
    from engine.report import overview

    overviews = list(overview.of(session.lookup, summaries, session.findings()))
    session.lookup.store.leave()
    for line in overview.FORMATS[form](overviews):
        print(line)
    unknown = {summary.variant.name: not_verified(summary.variant) for summary in summaries} if form == "text" else {}
    for name, text in unknown.items():
        if text:
            print(f"warning: {name}: not verified: {text}")
    return Exit.OK


def _show_provenance(arguments: argparse.Namespace) -> Exit:
    from engine import api
    from engine.report import grid
    from engine.store.remote import settings, statement

    session = api.session(arguments.recipes, **options.reading(arguments))
    store = session.lookup.store
    own = settings.without_remote()
    every = [
        (summary.variant.name, job.name, summary.records[job.name])
        for summary in session.summaries()
        for job in summary.variant.jobs
        if job.name in summary.records
    ]
    envelopes = [statement.envelope_of(store, record, own.signer) for _, _, record in every]
    store.leave()
    if arguments.json:
        fields = [
            {"recipe": recipe, "job": job, "envelope": json.loads(each.encode()), "statement": json.loads(each.payload)}
            for (recipe, job, _), each in zip(every, envelopes, strict=True)
        ]
        print(json.dumps(fields, ensure_ascii=False, indent=1))
        return Exit.OK
    grid.show(
        [
            (recipe, job, each.artifact, each.came, own.trust.described(opened))
            for (recipe, job, each), opened in zip(every, envelopes, strict=True)
        ]
    )
    return Exit.OK


def _row(job: str, record: Record | None) -> tuple[str, ...]:
    """Return the cells of a job's row: its name, and its artifact's size, seconds, memory and digest."""
    if record is None:
        return (job, "not built")
    memory = f"{sizes.binary(record.peak_bytes)} of memory"
    apart = f"{sizes.binary(record.anonymous_bytes)} without mapped files" if record.anonymous_bytes else ""
    return (job, sizes.decimal(record.size), f"{record.seconds:.1f} s", memory, apart, record.artifact)
