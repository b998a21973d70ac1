"""Reports: the events and records of a build on a terminal, as plain lines, or as lines of JSON."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.report.results import BuildReport


def report_for(
    *, json: bool, variants: int, quiet: bool = False, verbose: bool = False, parallel: int | None = None
) -> BuildReport:
    """Return what prints a build's events; of many `variants`, jobs without news are counted unless `verbose`."""
    if json:
        from engine.report.json_lines import JsonReport

        return JsonReport()
    from engine.report.results import MANY

    many, folded = variants > 1, variants > MANY and not verbose
    if not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI"):
        from engine.report.live import LiveReport

        return LiveReport(many=many, folded=folded, parallel=parallel)
    from engine.report.plain import PlainReport

    return PlainReport(many=many, folded=folded, quiet=quiet)
