"""`recipe cache releases`: list the published packages that the store and the remote keep, and let them go."""

from __future__ import annotations

import argparse
import json

from engine.commands import options
from engine.errors import Exit, StoreError

ABOUT = "the published packages that `recipe publish --release` can publish again; they stay until they are let go"
_SHORT = 12
"""Digits of a digest that are printed."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the action."""
    parser.add_argument(
        "--forget", metavar="DIGEST", help="let one go, here and at the remote: `gc` may remove it then"
    )
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
        places = [(str(store.root), release in noted), (tier.shown if tier is not None else "", release in remote)]
        rows.append({**release._asdict(), "kept": [place for place, is_there in places if is_there]})
        if arguments.forget is not None:
            releases.forget(store, release)
            if tier is not None and not tier.settings.proposed:
                tier.forget(release)
    if arguments.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print(f"{len(rows)} published packages {'are let go' if arguments.forget is not None else 'are kept'}")
        grid.show([
            (f"sha256 {row['sha256'][:_SHORT]}", f"key {row['key'][:_SHORT]}", row["recipe"], " and ".join(row["kept"]))
            for row in rows
        ])  # fmt: skip
    store.leave()
    return Exit.OK
