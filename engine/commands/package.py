"""Print where the packages lie, and build their container images; build the packages first where needed."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts, options
from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from engine.api import Session
    from engine.builder.variant import PlannedVariant
    from engine.events import Finished


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe package`."""
    options.add_recipes(parser)
    parser.add_argument("--image", action="store_true", help="build the image of the package's Dockerfile, too")
    push = "build the image, push it to HOST[:PORT][/FOLDER], and write manifests with its digest"
    parser.add_argument("--push", metavar="REGISTRY", type=registry, help=push)
    where = "where the manifests of a pushed image go (default: deploy/)"
    parser.add_argument("--manifests", metavar="DIR", type=Path, help=where)
    options.add_json(parser)
    add_building(parser, locked="build only what the recipe's lock says, else exit 2")


def registry(text: str) -> str:
    """Return a registry as `--push` takes it: HOST[:PORT][/FOLDER]. Raises ArgumentTypeError."""
    if not re.fullmatch(r"[A-Za-z0-9.-]+(:\d+)?(/[a-z0-9._-]+)*", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no registry: write HOST[:PORT][/FOLDER], as registry.example.com/ml"
        )
    return text


def add_building(parser: argparse.ArgumentParser, *, locked: str) -> None:
    """Add the options of a command that builds packages before its own work."""
    parser.add_argument("-j", "--jobs", metavar="N", type=amounts.count, help="build with at most N jobs at a time")
    parser.add_argument("--locked", action="store_true", help=locked)
    options.add_frozen(parser)
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, help="where packages go (default: build/)")


def run(arguments: argparse.Namespace) -> Exit:
    """Build the package of each recipe; print its folder, and the name of its image where one was built or pushed."""
    from engine import api
    from engine.server import package_image

    if arguments.manifests and not arguments.push:
        raise UsageError(
            "--manifests needs --push REGISTRY", hint="the package's own folder has manifests without a digest"
        )
    below = arguments.manifests or Path("deploy")
    if arguments.push and (file := next((each for each in (below, *below.parents) if each.is_file()), None)):
        raise UsageError(f"--manifests: {file} is a file", hint="name a folder, which need not exist")
    if arguments.image or arguments.push:
        package_image.builder()  # no image is an error before any build
    finished = build(arguments, api.session(arguments.recipes, **options.reading(arguments)))
    if finished.exit != Exit.OK:
        return finished.exit
    rows = []
    try:
        for variant, folder in finished.packages.items():
            row = {"recipe": variant, "package": str(folder)}
            if arguments.image or arguments.push:
                row["image"] = package_image.build(folder)
            if arguments.push:
                row |= {"image": package_image.push(folder, row["image"], arguments.push)}
                row |= {"manifests": str(below / variant)}
                package_image.write_manifests(folder, below / variant, row["image"])
            rows.append(row)
            if not arguments.json:
                labels = {"image": ": the image ", "manifests": ", manifests in "}
                print(folder, *(f"{label}{row[key]}" for key, label in labels.items() if key in row), sep="")
    finally:  # an image that fails hides none that was pushed before it
        if arguments.json:
            print(json.dumps(rows, ensure_ascii=False, indent=1))
    return Exit.OK


def build(arguments: argparse.Namespace, session: Session, *, allow_waiting: bool = False) -> Finished:
    """Build the packages that are not built yet. Progress is printed to standard error, without cached jobs."""
    from engine.builder.options import Options
    from engine.events import Ended, Event
    from engine.report import report_for
    from engine.report.plain import PlainReport

    with report_for(json=False, variants=len(session.variants)) as report:

        def on_event(event: Event) -> None:
            old = isinstance(event, Ended) and event.state == "cached"
            if not (old and isinstance(report, PlainReport)):
                report.on_event(event)

        out, parallel = arguments.output, arguments.jobs
        return session.build(Options(out=out, parallel=parallel, allow_waiting=allow_waiting), on_event)


def refuse_twin_models(variants: Sequence[PlannedVariant], *, apart: str) -> None:
    """Raise RecipeError for what Triton cannot serve and for two models of one name; `apart` ends the second hint."""
    from engine.runtimes import registry

    owners: dict[str, PlannedVariant] = {}
    for variant in variants:
        recipe = variant.loaded.recipe
        runtime = registry.of(recipe)
        if not runtime.loads_in_triton:
            hint = "use runtime: tensorrt for a package that Triton serves"
            raise variant.loaded.error(runtime.not_triton, "target", "runtime", hint=hint)
        name = recipe.package.triton.name or recipe.name
        if name in owners:
            first = owners[name].loaded
            facts = [f"the other one: {owners[name].name}, {first.position('package', 'triton', 'name') or first.path}"]
            what = f"two packages hold a model called {name!r}"
            hint = f"set package.triton.name to another in one of them, or {apart}"
            raise variant.loaded.error(what, "package", "triton", "name", facts=facts, hint=hint)
        owners[name] = variant
