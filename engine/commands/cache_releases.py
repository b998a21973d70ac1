"""`recipe cache releases`: list the published packages that the store and the remote keep, and let them go."""

from __future__ import annotations

import argparse
import json

from engine.commands import options
from engine.errors import Exit, StoreError

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
    rows = []
    for release in dict.fromkeys((*noted, *remote)):
        kept = [str(store.root)] if release in noted else []
        kept += [tier.shown] if tier is not None and release in remote else []
        rows.append({**release._asdict(), "kept": kept})
        if arguments.forget is not None:
            releases.forget(store, release)
            if tier is not None and not tier.settings.proposed:
                tier.forget(release)
    store.leave()
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return Exit.OK
    print(f"{len(rows)} published packages {'are let go' if arguments.forget is not None else 'are kept'}")
    cells = [(row["recipe"], f"sha256 {row['sha256'][:_SHORT]}", f"key {row['key'][:_SHORT]}") for row in rows]
    grid.show([(*each, " and ".join(row["kept"])) for each, row in zip(cells, rows, strict=True)])
    return Exit.OK
