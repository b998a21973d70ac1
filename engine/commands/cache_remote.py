"""Look after a remote: `cache gc --remote` and `cache verify --remote`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import Exit, UsageError
from engine.text import sizes
from engine.text.lists import counted

if TYPE_CHECKING:
    from engine.store.remote.guard import GuardedRemote
    from engine.store.remote.settings import RemoteSettings
    from engine.store.remote.upkeep import RemoteCollected, RemoteVerdict

_MOST = 0.5
"""The share of the remote's records or bytes that a collection may remove without `--yes`."""


def add_remote(parser: argparse.ArgumentParser) -> None:
    """Declare the option that names the remote instead of the store on this machine."""
    parser.add_argument(
        "--remote", metavar="URL", nargs="?", const="", help="the remote, not the store here (default: RECIPE_REMOTE)"
    )


def collect(arguments: argparse.Namespace) -> Exit:
    """Remove what is old from the remote. Raises UsageError and RemoteError."""
    from engine.store.remote import remotes

    if arguments.recipes or arguments.max_size is not None:
        raise UsageError("a remote is collected by age alone", hint="`--older-than 90d` names the age")
    settings = _settings(arguments.remote, removes=True)
    age = arguments.older_than if arguments.older_than is not None else settings.retention
    if age is None:
        raise UsageError(
            "no age is named: what is old at the remote?",
            hint="`--older-than 90d`, or `retention_days` under `[remote]` in the user's config.toml",
        )
    remote = remotes.remote_of(settings.url, environ=settings.environ, writes=True).checked()
    result = asyncio.run(_collected(remote, age, dry_run=arguments.dry_run, yes=arguments.yes))
    if arguments.json:
        print(json.dumps(vars(result)))
    else:
        _print_collected(result, remote.shown, dry_run=arguments.dry_run)
    return Exit.OK


async def _collected(remote: GuardedRemote, age: float, *, dry_run: bool, yes: bool) -> RemoteCollected:
    from engine.store.remote import upkeep
    from engine.store.remote.attempts import RetryingRemote, patient

    try:
        if not (dry_run or yes):
            preview = await upkeep.collect(RetryingRemote(remote, patient()), older_than=age, dry_run=True)
            if preview.share > _MOST:
                raise UsageError(
                    f"this would remove more than half of the remote: {preview.records} of "
                    f"{preview.records + preview.left_records} records, {sizes.decimal(preview.bytes)} of "
                    f"{sizes.decimal(preview.bytes + preview.left_bytes)}",
                    ["nothing was removed"],
                    "`--dry-run` says what would go; `--yes` removes it",
                )
        return await upkeep.collect(RetryingRemote(remote, patient()), older_than=age, dry_run=dry_run)
    finally:
        await remote.close()


def _print_collected(result: RemoteCollected, shown: str, *, dry_run: bool) -> None:
    verb = "would remove" if dry_run else "removed"
    print(f"{shown}: {verb} {result.records} records and {result.blobs} blobs with {sizes.decimal(result.bytes)}")
    print(f"{result.left_records} records and {result.left_blobs} blobs with {sizes.decimal(result.left_bytes)} stay")
    if result.unreadable:
        print(f"{result.unreadable} records cannot be read, so all blobs stay (`recipe cache verify --remote`)")


def verify(arguments: argparse.Namespace) -> Exit:
    """Check the remote, and fail where a record or a blob is not as it should be. Raises UsageError, RemoteError."""
    from engine.store.remote import remotes

    if arguments.sources or arguments.provenance:
        raise UsageError("--sources and --provenance are about the store on this machine", hint="leave out --remote")
    removes = arguments.remove_damaged
    settings = _settings(arguments.remote, removes=removes)
    if settings.trust.is_empty:
        raise UsageError(
            "no record of the remote counts: no key is trusted",
            hint="`recipe cache trust --key KEY` adds the key of whoever pushes; RECIPE_TRUST=none trusts everything",
        )
    remote = remotes.remote_of(settings.url, environ=settings.environ, writes=removes).checked()
    verdict, removed = asyncio.run(_verdict(remote, settings, deep=arguments.deep, removes=removes))
    if arguments.json:
        faults = [vars(fault) for fault in verdict.faults]
        numbers = {name: getattr(verdict, name) for name in ("records", "blobs", "bytes", "unnamed")}
        print(json.dumps({"faults": faults, **numbers, "removed": removed}))
    else:
        _print_verdict(verdict, remote.shown, deep=arguments.deep)
        if removed:
            again = "`recipe cache push` or `recipe publish` where it was built writes it again"
            print(f"removed {counted(len(removed), 'damaged blob')}: {again}")
    return Exit.FAILED if verdict.faults else Exit.OK


async def _verdict(
    remote: GuardedRemote, settings: RemoteSettings, *, deep: bool, removes: bool
) -> tuple[RemoteVerdict, list[str]]:
    """Check the remote; return the verdict, and the names of the damaged blobs that were removed."""
    from engine.store.remote import upkeep
    from engine.store.remote.attempts import RetryingRemote, patient
    from engine.store.remote.objects import BLOBS

    patiently = RetryingRemote(remote, patient())
    try:
        before = {entry.name: entry for entry in await patiently.listed(BLOBS)} if removes else {}
        verdict = await upkeep.check(patiently, settings.trust, deep=deep)
        damaged = [before[fault.name] for fault in verdict.faults if fault.name in before]
        return verdict, [each.name for each in damaged if await upkeep.remove_unless_renewed(patiently, each)]
    finally:
        await remote.close()


def _print_verdict(verdict: RemoteVerdict, shown: str, *, deep: bool) -> None:
    from engine.report import grid

    grid.show([(fault.kind, f"{fault.name}: {fault.why}") for fault in verdict.faults])
    looked = "read" if deep else "looked up"
    print(
        f"{shown}: {verdict.records} records that count, {verdict.blobs} blobs with {sizes.decimal(verdict.bytes)} "
        f"{looked}, {verdict.unnamed} blobs of no such record"
    )
    kinds = ", ".join(f"{count} {kind}" for kind, count in verdict.kinds.most_common())
    print(f"not as it should be: {kinds}" if kinds else "everything is as it was pushed")


def _settings(url: str, *, removes: bool = False) -> RemoteSettings:
    """Return the settings of the remote that the option, the environment or the settings name."""
    from engine.recipe.project import project_of
    from engine.store.remote import settings

    chosen = settings.of(project_of(Path("recipe.yaml")), os.environ, url=url)
    if chosen is None:
        raise UsageError("no remote is named", hint="--remote s3://BUCKET/PREFIX, or RECIPE_REMOTE")
    if removes and chosen.proposed:
        raise UsageError(
            "the remote is only proposed by the project, and nothing is removed there",
            hint="name it yourself: --remote URL, RECIPE_REMOTE, or the user's config.toml",
        )
    return chosen
