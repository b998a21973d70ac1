"""The binding of a record: a digest of step, key, output and report, computed by the process that read the output."""

from __future__ import annotations

import json
from collections.abc import Mapping

from engine import digest
from engine.digest import Digest
from engine.store import output
from engine.store.output import Files


def of(*, step: str, key: str, files: Files, report: Mapping[str, object]) -> Digest:
    """Return the digest that binds an output and a report to the key and the step of the job that they answer."""
    return of_tree(step=step, key=key, tree=output.tree(files), report=report)


def of_tree(*, step: str, key: str, tree: Digest, report: Mapping[str, object]) -> Digest:
    """Return the binding of an output whose files have the digest `tree`."""
    rows = [
        ("step", step),
        ("key", key),
        ("output", tree),
        ("report", json.dumps(report, sort_keys=True)),
    ]
    return digest.of_rows(rows)
