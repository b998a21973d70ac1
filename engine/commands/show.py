"""Show what was built: artifacts, sizes, accuracy, latencies, where."""

from __future__ import annotations

import argparse
import json

from engine.commands import options
from engine.errors import Exit


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    options.add_recipes(parser)
    options.add_json(parser)


def run(arguments: argparse.Namespace) -> Exit:
    """Print the records of each variant's last build."""
    from engine import api
    from engine.report.table import size_in_words, table

    summaries = api.show(arguments.recipes, **options.reading(arguments))
    if arguments.json:
        print(json.dumps([summary.to_json() for summary in summaries], ensure_ascii=False, indent=1))
        return Exit.OK
    for summary in summaries:
        print(table(summary), end="")
        for job in summary.variant.jobs:
            record = summary.records.get(job.name)
            made = (
                f"{size_in_words(record.size):>10}  {record.seconds:8.1f} s  {record.artifact}"
                if record
                else "  not built"
            )
            print(f"  {job.name:<12}{made}")
    return Exit.OK
