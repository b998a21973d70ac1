"""`recipe cache releases`: list the published packages that the store and the remote keep, and let them go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from engine.commands import options
from engine.errors import Exit, StoreError
from engine.text.lists import counted

ABOUT = "packages that `recipe publish --release DIGEST URL` can publish again; they stay until they are let go"
_SHORT = 12
"""Digits of a digest that are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the action."""
    parser.add_argument("--forget", metavar="DIGEST", help="let one go, here and at the remote; a later gc removes it")
    options.add_cache(parser)
    options.add_json(parser)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Exit:
    from engine.publishing import releases as publishing
    from engine.report import grid
    from engine.store import releases

    store, tier = publishing.here(arguments.cache)
    if arguments.forget is not None:
        noted, remote, looked = publishing.matching(arguments.forget, store, tier)
        if not (noted or remote):
            raise StoreError(f"no release matches {arguments.forget}", looked)
    else:
        noted, remote = releases.every(store), {} if tier is None else tier.releases()
    shown = "" if tier is None else tier.shown
    usable = {str(store.root): {each.sha256 for each in noted}}
    usable[shown] = {each.sha256 for each in remote if not each.refused}
    refused = {release.sha256: release.refused for release in remote}
    rows = []
    for sha256, release in {each.sha256: each for each in (*remote, *noted)}.items():
        kept = [place for place, sums in usable.items() if sha256 in sums]
        rows.append({**release._asdict(), "kept": kept, "refused": refused.get(sha256, "")})
        if arguments.forget is not None:
            releases.forget(store, release)
            if tier is not None and not tier.settings.proposed:
                tier.forget(release)
    store.leave()
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return Exit.OK
    count = len(rows) if arguments.forget is not None else sum(bool(row["kept"]) for row in rows)
    verb = f"{'is' if count == 1 else 'are'} {'kept' if arguments.forget is None else 'let go'}"
    print(f"{counted(count, 'published package')} {verb}")
    grid.show([_cells(row, shown) for row in rows])
    return Exit.OK


def _cells(row: Mapping[str, Any], remote: str) -> tuple[str, ...]:
    where = " and ".join(row["kept"])
    if row["refused"]:
        where += f"{'; ' if where else ''}{remote}: {row['refused']}"
    key = f"key {row['key'][:_SHORT]}" if row["key"] else ""
    return row["recipe"], f"sha256 {row['sha256'][:_SHORT]}", key, where
