"""Publish packages into a Triton model repository, as numbered versions; build them first, or take an earlier one."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from engine.commands import options
from engine.commands import package as packages_of
from engine.errors import Exit, UsageError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.api import Session
    from engine.publishing.package import PackageContent
    from engine.publishing.publisher import ListedVersion, Published
    from engine.publishing.repository import ModelRepository
    from engine.store.record import Record
    from engine.store.remote.releases import ReleaseTier
    from engine.store.store import Store

_SHORT = 12
"""Digits of a digest that are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe publish`."""
    options.add_recipes(parser, needed=False)
    parser.add_argument("url", metavar="URL", help="the model repository: s3://, gs://, az:// or file:///PATH")
    parser.add_argument("--list", action="store_true", help="print which versions are there, and which are served")
    parser.add_argument("--release", metavar="DIGEST", help="what was published before, by the sha256 or key of --list "
                        "or its first 8 digits: from the store or the remote, without a recipe")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and write nothing")
    packages_of.add_building(parser, locked="publish only what the recipe's lock says, else exit 2")
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Publish the package of each recipe or of a release, or list what is published."""
    if arguments.list and (arguments.recipes or arguments.dry_run or arguments.release):
        raise UsageError("--list takes nothing but the URL", hint="recipe publish --list URL")
    if arguments.list:
        return _list(arguments)
    if arguments.release is not None:
        return _publish_again(arguments)
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
        return "damaged: files are missing or have another size"
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
    from engine.publishing.repository import ModelRepository
    from engine.store.remote.releases import ReleaseTier

    repository = ModelRepository(
        arguments.url, writes=not arguments.dry_run
    )  # a wrong URL is an error before any build
    session = api.session(arguments.recipes, **options.reading(arguments))
    packages_of.refuse_twin_models(session.variants, apart="choose one with --only")
    packages, code = _built(arguments, session)
    store = session.lookup.store
    tier = None if store.tier is None else ReleaseTier(store, store.tier.settings, brief=False)
    _publish_each(arguments, repository, packages, store, tier)
    return code


def _publish_again(arguments: argparse.Namespace) -> Exit:
    """Publish a release. No recipe is read, and nothing is planned or built."""
    from engine.publishing import releases
    from engine.publishing.repository import ModelRepository
    from engine.report import progress

    building = ("recipes", "set", "only", "allow_path", "jobs", "locked", "frozen", "output")
    if wrong := [name for name in building if getattr(arguments, name)]:
        what = f"--release builds nothing, and takes no {', '.join(wrong)}"
        raise UsageError(what, hint="recipe publish --release DIGEST URL")
    repository = ModelRepository(arguments.url, writes=not arguments.dry_run)
    store, tier = releases.here(arguments.cache)
    with progress.transfer_bar(arguments.release) as on_bytes:
        if tier is not None:
            tier.counts.on_bytes = on_bytes
        package = releases.find(arguments.release, store, tier)
    _publish_each(arguments, repository, [package], store, tier)
    return Exit.OK


def _publish_each(
    arguments: argparse.Namespace, repository: ModelRepository, packages: Iterable[tuple[PackageContent, Record]],
    store: Store, tier: ReleaseTier | None,
) -> None:  # fmt: skip
    """Publish packages and print what was done. Each is kept for `--release` before it is served."""
    from engine.publishing import releases
    from engine.publishing.publisher import Publisher, PublishWaits
    from engine.report import progress

    results: list[dict[str, object]] = []
    for package, record in packages:
        kept, why = ([], "") if arguments.dry_run else releases.keep(store, tier, package, record)
        if why:
            print(f"note: {package.name} is not kept for `--release` everywhere: {why}", file=sys.stderr, flush=True)
        total = sum(file.size for model in package.models for file in model.files.values())
        with progress.transfer_bar(package.name, total=total) as on_bytes:
            publisher = Publisher(repository, package, waits=PublishWaits(), on_bytes=on_bytes)
            result = asyncio.run(publisher.plan() if arguments.dry_run else publisher.publish())
        results.append({**_result_fields(package, result, repository.shown), "kept": kept})
        if not arguments.json:
            for version, file in result.damaged.items():
                what = f"{package.name} version {version} is damaged: {file} is not as it was published"
                place = f"version {result.version} takes its place, and version {version} can be removed"
                print(f"{repository.shown}: {what}; {place}")
            print(_text(package, result, repository.shown))
            if kept:
                print(f"`--release {package.sha256[:_SHORT]}` publishes it again, from {' or '.join(kept)}")
    store.leave()
    if arguments.json:
        print(json.dumps(results, ensure_ascii=False, indent=1))


def _built(arguments: argparse.Namespace, session: Session) -> tuple[list[tuple[PackageContent, Record]], Exit]:
    """Build what is not built, and return the packages and the exit code. A failed build publishes nothing."""
    from engine.publishing import package

    finished = packages_of.build(arguments, session)
    if finished.exit != Exit.OK:
        print("nothing is published", file=sys.stderr, flush=True)
        return [], finished.exit
    packages: list[tuple[PackageContent, Record]] = []
    for summary in session.summaries():
        variant = summary.variant
        delivering = next(job for job in variant.jobs if job.traits.delivers)
        record = summary.records[delivering.name]
        folder = finished.packages[variant.name]
        packages.append((package.read(folder, recipe=variant.name, key=str(record.digest)), record))
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
