"""Show, verify, clean up and share the store: `stats`, `ls`, `verify`, `gc`, and the actions that share results."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import amounts, cache_remote, cache_sharing, options
from engine.errors import Exit, UsageError
from engine.text import sizes

if TYPE_CHECKING:
    from engine.store.collection import Collected
    from engine.store.record import Record
    from engine.store.verification import Verdict

_MOST = 0.5
"""The share of the store's records or bytes that a collection may remove without a question."""
_CONFIRM = "`--dry-run` lists what would go; `--yes` removes it"
_PROGRESS_FILES = 64
"""How many files `recipe cache verify` reads between two updates of its progress on the terminal."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `recipe cache`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")

    def action(name: str, about: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=about, description=about, allow_abbrev=False)
        return added

    options.add_cache(action("stats", "how much is stored"))
    options.add_cache(action("ls", "one line per record"))
    verify = action("verify", "read everything; put aside what is damaged, so that the next build makes it again")
    verify.add_argument("-j", "--jobs", metavar="N", type=amounts.count, help="read N files at a time")
    verify.add_argument(
        "--sources", action="store_true", help="also read the sources and packages of builds, whatever their times say"
    )
    verify.add_argument(
        "--provenance", action="store_true", help="also check signatures, and files against the SHA-256 that was signed"
    )
    cache_remote.add_remote(verify)
    verify.add_argument("--deep", action="store_true", help="with --remote: also read every blob there")
    verify.add_argument("--remove-damaged", action="store_true", help="with --remote: remove damaged blobs there; "
                        "the next push or publication of their owner writes them again")  # fmt: skip
    options.add_cache(verify)
    options.add_json(verify)
    collect = action("gc", "remove leftovers and what the limits do not let stay, safe beside running builds")
    options.add_recipes(collect, needed=False, about="keep what these recipes reach; with no other limit, only that")
    collect.add_argument(
        "--max-size", metavar="SIZE", type=amounts.size, help="the longest unused go until the rest is smaller: 20GB"
    )
    collect.add_argument("--older-than", metavar="AGE", type=amounts.age, help="what was not used for so long: 30d")
    cache_remote.add_remote(collect)
    collect.add_argument("--dry-run", action="store_true", help="say what would go, and remove nothing")
    collect.add_argument("--yes", action="store_true", help="remove more than half of the store without a question")
    options.add_json(collect)
    cache_sharing.arguments(action)


def run(arguments: argparse.Namespace) -> Exit:
    """Run the action that the command line names, for example `gc`. Raises UsageError where there is no store."""
    from engine.recipe.project import store_of
    from engine.store import file_lock

    if getattr(arguments, "remote", None) is not None:
        return {"verify": cache_remote.verify, "gc": cache_remote.collect}[arguments.action](arguments)
    if getattr(arguments, "deep", False):
        raise UsageError("--deep is for a remote: every file of a store is always read", hint="add --remote")
    if getattr(arguments, "remove_damaged", False):
        raise UsageError("--remove-damaged is for a remote: a store mends itself or puts aside", hint="add --remote")
    recipes = getattr(arguments, "recipes", [])
    root = store_of(arguments.cache, recipes[0] if recipes else Path("recipe.yaml"))
    if not root.is_dir() or not any((root / name).exists() for name in ("format", "records")):
        raise UsageError(f"there is no store at {root}", hint="name one with --cache, or build something first")
    action = {"stats": _stats, "ls": _list, "verify": _verify, "gc": _collect}[arguments.action]
    with file_lock.announcing(lambda text: print(f"note: {text}", file=sys.stderr, flush=True)):
        return action(arguments, root)


def _records(root: Path) -> Sequence[Record]:
    from engine.store.opening import open_store

    return sorted(open_store(root).records(), key=lambda record: record.made_at)


def _stats(_arguments: argparse.Namespace, root: Path) -> Exit:
    from engine.report import grid
    from engine.store.collection import contents

    records = _records(root)
    artifacts = {record.artifact: record.size for record in records}
    stored = contents(records)
    aside = len(list((root / "quarantine").iterdir())) if (root / "quarantine").is_dir() else 0
    rows = [
        ("store", str(root)),
        ("records", str(len(records))),
        ("artifacts", f"{len(artifacts)}, {sizes.decimal(sum(artifacts.values()))}"),
        ("on disk", f"{sizes.decimal(sum(stored.values()))} in {len(stored)} files: equal content is stored once"),
    ]
    if aside:
        rows.append(("put aside", f"{aside} damaged, in quarantine/ (`recipe cache gc` removes them)"))
    grid.show(rows)
    return Exit.OK


def _list(_arguments: argparse.Namespace, root: Path) -> Exit:
    from engine.report import grid

    rows = [
        (record.job, sizes.decimal(record.size), f"{record.seconds:.1f} s", record.artifact)
        for record in _records(root)
    ]
    grid.show(rows, [grid.LEFT, grid.RIGHT, grid.RIGHT])
    return Exit.OK


def _verify(arguments: argparse.Namespace, root: Path) -> Exit:
    from engine.machine import cpu
    from engine.store import verification

    shown = sys.stderr.isatty() and not arguments.json

    def progress(done: int, total: int) -> None:
        if shown and (done % _PROGRESS_FILES == 0 or done == total):
            sys.stderr.write(f"\rread {done} of {total} files")
            sys.stderr.flush()

    parallel = arguments.jobs or len(cpu.usable())
    verdict = verification.verify(root, parallel=parallel, sources=arguments.sources, on_progress=progress)
    if shown:
        sys.stderr.write("\r\033[K")
    if arguments.json:
        damages = [
            {"path": _inside(each.path, root), "why": each.why, "mended": each.mended} for each in verdict.damages
        ]
        numbers = {name: getattr(verdict, name) for name in ("records", "files", "bytes", "orphans", "swept")}
        print(json.dumps({"damaged": damages, **numbers}))
    else:
        _print_verdict(verdict, root)
    is_proven = not arguments.provenance or _check_provenance(root, as_json=arguments.json)
    return Exit.OK if is_proven and not verdict.damages else Exit.FAILED


def _check_provenance(root: Path, *, as_json: bool) -> bool:
    """Check all statements of a store, print the result, and say whether nothing is wrong."""
    from engine.report import grid
    from engine.store.opening import open_store
    from engine.store.remote import settings, statement

    checked = statement.check_store(open_store(root), settings.without_remote().trust)
    if as_json:
        faults = [{"job": record.job, "key": record.digest, "why": why} for record, why in checked.faults]
        numbers = {"statements": checked.statements, "files": checked.files, "signers": dict(checked.signers)}
        print(json.dumps({"provenance": {"faults": faults, **numbers}}))
    else:
        grid.show([(record.job, record.digest, why) for record, why in checked.faults])
        counts = checked.signers.items()
        signers = ", ".join(f"{count} signed by {name}" if name else f"{count} not signed" for name, count in counts)
        print(f"{checked.statements} statements: {signers or 'none to check'}; {checked.files} files compared")
    return not checked.faults


def _print_verdict(verdict: Verdict, root: Path) -> None:
    from engine.report import grid

    rows = [
        ("mended" if damage.mended else "damaged", f"{_inside(damage.path, root)}: {damage.why}")
        for damage in verdict.damages
    ]
    grid.show(rows)
    print(f"{verdict.records} records, {verdict.files} files, {sizes.decimal(verdict.bytes)} read")
    if verdict.orphans or verdict.swept:
        print(f"{verdict.orphans + verdict.swept} leftovers of builds that were killed, all whole")
    if verdict.damages:
        print(f"{len(verdict.damages)} damaged: put aside, or mended; the next build makes again what it needs of them")
    else:
        print("everything is as it was stored")


def _inside(path: Path, root: Path) -> str:
    """Return a path relative to the store; the path of a source outside the store stays as it is."""
    return path.relative_to(root.absolute()).as_posix() if path.is_relative_to(root.absolute()) else str(path)


def _collect(arguments: argparse.Namespace, root: Path) -> Exit:
    from engine import api
    from engine.store.collection import CollectionLimits, collect
    from engine.store.opening import open_store

    reach = api.reach(arguments.recipes, **options.reading(arguments)) if arguments.recipes else None
    limits = CollectionLimits(reach, arguments.max_size, arguments.older_than)
    store = open_store(root)
    ask = not arguments.json and sys.stdin.isatty() and sys.stdout.isatty()
    limited = any(limit is not None for limit in (limits.reach, limits.max_bytes, limits.older_than_seconds))
    if limited and not (
        arguments.dry_run or arguments.yes or _is_confirmed(collect(store, limits, dry_run=True), ask=ask)
    ):
        raise UsageError("nothing was removed", hint=_CONFIRM)
    result = collect(store, limits, dry_run=arguments.dry_run)
    if arguments.json:
        _print_json_collected(result)
    else:
        _print_collected(result, dry_run=arguments.dry_run)
    return Exit.OK


def _is_confirmed(preview: Collected, *, ask: bool) -> bool:
    """Tell whether a collection removes at most half, or the user agrees. Raises UsageError without a terminal."""
    if preview.share <= _MOST:
        return True
    if not ask:
        total = len(preview.records) + preview.left_records
        raise UsageError(
            f"this would remove more than half of the store: {len(preview.records)} of {total} records, "
            f"{sizes.decimal(preview.bytes)} of {sizes.decimal(preview.bytes + preview.left_bytes)}",
            ["nothing was removed"],
            _CONFIRM,
        )
    _print_collected(preview, dry_run=True)
    try:
        return input("this is more than half of the store; remove it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _print_collected(result: Collected, *, dry_run: bool) -> None:
    from engine.report import grid

    verb = "would remove" if dry_run else "removed"
    rows = [
        (f"{verb} {record.job}", sizes.decimal(record.size), f"unused for {amounts.since(last)}")
        for record, last in result.records
    ]
    grid.show(rows, [grid.LEFT, grid.RIGHT])
    print(f"{verb} {len(result.records)} records with {sizes.decimal(result.bytes)}, and {result.leftovers} leftovers")
    if result.in_use:
        print(f"{result.in_use} stay because a running build uses them")
    print(f"{sizes.decimal(result.left_bytes)} stay")


def _print_json_collected(result: Collected) -> None:
    records = [
        {"key": record.digest, "step": record.job, "bytes": record.size, "last_used": last}
        for record, last in result.records
    ]
    numbers = {name: getattr(result, name) for name in ("bytes", "leftovers", "in_use", "left_records", "left_bytes")}
    print(json.dumps({"records": records, **numbers}))
