"""Publish packages into a Triton model repository, as numbered versions; build them first where needed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.commands import options
from engine.commands import package as packages_of
from engine.errors import Exit, UsageError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.api import Session
    from engine.publishing.package import PackageContent
    from engine.publishing.publisher import ListedVersion, Published

_SHORT = 12
"""Digits of a digest that are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe publish`."""
    options.add_recipes(parser, needed=False)
    parser.add_argument("url", metavar="URL", help="the model repository: s3://, gs://, az:// or file:///PATH")
    parser.add_argument("--list", action="store_true", help="print which versions are there, and which are served")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and write nothing")
    packages_of.add_building(parser, locked="publish only what the recipe's lock says, else exit 2")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Publish the package of each recipe, or list what is published."""
    if arguments.list and (arguments.recipes or arguments.dry_run):
        raise UsageError("--list takes nothing but the URL", hint="recipe publish --list URL")
    if arguments.list:
        return _list(arguments)
    if not arguments.recipes:
        raise UsageError(
            "a recipe and a URL are needed", [f"given: {arguments.url}"],
            "recipe publish recipes/minilm_cpu.yaml s3://BUCKET/models; --list URL prints what is there",
        )  # fmt: skip
    return _publish(arguments)


def _list(arguments: argparse.Namespace) -> Exit:
    from engine.publishing import publisher
    from engine.publishing.repository import ModelRepository
    from engine.report import grid

    rows = asyncio.run(publisher.versions(ModelRepository(arguments.url, writes=False)))
    if arguments.json:
        print(json.dumps([_fields(row) for row in rows], ensure_ascii=False, indent=1))
        return Exit.OK
    if not rows:
        print("`recipe publish` has published nothing there")
    grid.show([_cells(row) for row in rows], [grid.LEFT, grid.RIGHT, grid.LEFT, grid.RIGHT])
    return Exit.OK


def _state(row: ListedVersion) -> str:
    if row.decision is None:
        return "being published"
    if not row.decision.complete:
        return "abandoned"
    if not row.whole:
        return "damaged: files are missing"
    return "served" if row.served else "kept"


def _fields(row: ListedVersion) -> dict[str, object]:
    fields: dict[str, object] = {"package_name": row.package, "version": row.version, "state": _state(row)}
    decision = row.decision
    if decision is not None and decision.complete:
        facts = {"recipe": decision.recipe, "key": decision.key, "sha256": decision.sha256}
        fields |= {**facts, "bytes": decision.size, "published": decision.when, "models": list(decision.models)}
    elif row.claimed is not None:
        fields["claimed"] = row.claimed
    return fields


def _cells(row: ListedVersion) -> Sequence[str]:
    cells = [row.package, str(row.version), _state(row)]
    decision = row.decision
    if decision is not None and decision.complete:
        facts = f"key {decision.key[:_SHORT]}", f"sha256 {decision.sha256[:_SHORT]}"
        return [*cells, sizes.decimal(decision.size), _time(decision.when), decision.recipe, *facts]
    return cells if row.claimed is None else [*cells, "", f"since {_time(row.claimed)}"]


def _time(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(when))


def _publish(arguments: argparse.Namespace) -> Exit:
    from engine import api
    from engine.publishing.publisher import Publisher, PublishWaits
    from engine.publishing.repository import ModelRepository
    from engine.report import progress

    repository = ModelRepository(
        arguments.url, writes=not arguments.dry_run
    )  # a wrong URL is an error before any build
    session = api.session(arguments.recipes, **options.reading(arguments))
    packages_of.refuse_twin_models(session.variants, apart="choose one with --only")
    packages, code = _built(arguments, session)
    results: list[dict[str, object]] = []
    for package in packages:
        total = sum(file.size for model in package.models for file in model.files.values())
        with progress.transfer_bar(package.name, total=total) as on_bytes:
            publisher = Publisher(repository, package, waits=PublishWaits(), on_bytes=on_bytes)
            result = asyncio.run(publisher.plan() if arguments.dry_run else publisher.publish())
        results.append(_result_fields(package, result, repository.shown))
        if not arguments.json:
            for version, file in result.damaged.items():
                what = f"{package.name} version {version} is damaged: {file} is not as it was published"
                place = f"version {result.version} takes its place, and version {version} can be removed"
                print(f"{repository.shown}: {what}; {place}")
            print(_text(package, result, repository.shown))
    if arguments.json:
        print(json.dumps(results, ensure_ascii=False, indent=1))
    return code


def _built(arguments: argparse.Namespace, session: Session) -> tuple[list[PackageContent], Exit]:
    """Build what is not built, and return the packages and the exit code. A failed build publishes nothing."""
    from engine.publishing import package

    finished = packages_of.build(arguments, session)
    if finished.exit != Exit.OK:
        print("nothing is published", file=sys.stderr, flush=True)
        return [], finished.exit
    packages: list[PackageContent] = []
    for summary in session.summaries():
        variant = summary.variant
        delivering = next(job for job in variant.jobs if job.traits.delivers)
        key = str(summary.records[delivering.name].digest)
        packages.append(package.read(finished.packages[variant.name], recipe=variant.name, key=key))
    return packages, Exit.OK


def _result_fields(package: PackageContent, result: Published, where: str) -> dict[str, object]:
    return {
        "package_name": package.name, "version": result.version, "state": str(result.state), "url": where,
        "recipe": package.recipe, "key": package.key, "sha256": package.sha256, "bytes": result.manifest.size,
        "models": list(result.manifest.models), "files": list(result.written), "serves": result.serves,
        "damaged": {str(version): file for version, file in result.damaged.items()},
    }  # fmt: skip


def _text(package: PackageContent, result: Published, where: str) -> str:
    from engine.publishing.publisher import PublishState

    name = f"{where}: {package.name} version {result.version}"
    size, count = sizes.decimal(result.manifest.size), len(result.manifest.files)
    match result.state:
        case PublishState.PUBLISHED:
            return f"{name} is published and served: {count} files, {size}, sha256 {package.sha256[:_SHORT]}"
        case PublishState.SERVED_AGAIN:
            instead = "is served" if result.serves == result.version else f"would be served instead of {result.serves}"
            return f"{name} is this package already; it {instead}"
        case PublishState.UNCHANGED:
            return f"{name} is this package already, and is served: nothing is written"
        case PublishState.NEWER_SERVED:
            return f"{name} is published; {result.serves}, which was published meanwhile, stays served"
        case PublishState.PLANNED:
            lines = [f"{name} would be published: {count} files, {size}", *(f"  {each}" for each in result.written)]
            return "\n".join(lines)
