"""Look into the store: `stats`, `ls`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.commands import options
from engine.errors import Exit, UsageError

if TYPE_CHECKING:
    from engine.store import Record


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    for name, about in (("stats", "how much is stored"), ("ls", "one line per record")):
        options.add_cache(actions.add_parser(name, help=about, description=about))


def run(arguments: argparse.Namespace) -> Exit:
    """Print the store's numbers or its records."""
    from engine.selection import store_of
    from engine.store import Store

    root = store_of(arguments.cache, Path("recipe.yaml"))
    if not (root / "format").is_file():
        raise UsageError(f"there is no store at {root}", hint="name one with --cache, or build something first")
    records = sorted(Store(root).records(), key=lambda record: record.made_at)
    if arguments.action == "stats":
        _stats(records, root)
        return Exit.OK
    for record in records:
        print(f"{record.key['step']:<12} {record.size / 1e6:>10.1f} MB {record.seconds:>8.1f} s  {record.artifact}")
    return Exit.OK


def _stats(records: Sequence[Record], root: Path) -> None:
    artifacts = {record.artifact: record.size for record in records}
    contents = {content: size for record in records for size, content in record.files.values()}
    print(f"store      {root}")
    print(f"records    {len(records)}")
    print(f"artifacts  {len(artifacts)}, {sum(artifacts.values()) / 1e6:.1f} MB")
    print(f"on disk    {sum(contents.values()) / 1e6:.1f} MB in {len(contents)} files: equal content is stored once")
