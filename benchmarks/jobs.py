"""Thousands of jobs that read and write one small file each: cold, with nothing to do, with one file changed."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import recipe_program as program
import trivial_jobs
from build_tools import DOIT, DVC, MAKE, MAKE_R, NINJA, SNAKEMAKE, absent
from timing import Took, cpu, duration, in_turns, machine, median, once, peak, ratio, table, times
from trivial_jobs import ALONE, LOOP, OURS, Entry

PEERS = (MAKE, MAKE_R, NINJA, DOIT, DVC, SNAKEMAKE)
PHASES = ("cold", "no-op", "one leaf")

GOALS = {1000: 0.500, 10_000: 1.500}
"""By the number of jobs: the most seconds that a build with one changed file may take beyond the changed job alone."""

Results = dict[str, dict[str, list[Took]]]
"""Runs by contender and phase."""


def main() -> None:
    """Measure the contenders in turns for each number of jobs, and print the tables."""
    options = _options()
    results: dict[int, Results] = {}
    for count in options.jobs:
        with tempfile.TemporaryDirectory() as scratch:
            results[count] = _measure(_entries(count, Path(scratch).resolve(), options), options)
        _print_size(count, results[count], options)
    if len(results) > 1:
        _print_growth(results)
    versions = [f"{peer.name} {peer.version(path)}" for peer in PEERS if (path := peer.find(options.peers))]
    print(f"{machine()}; {program.described()}; {', '.join(versions)}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000], help="how many (1000 10000)")
    parser.add_argument("--runs", type=int, default=9, help="rounds with nothing to do and with one change (9)")
    parser.add_argument("--cold-runs", type=int, default=2, help="rounds from nothing (2)")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a build is given up (120)")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="a bin folder to look for the other tools in first")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure only these rows")
    return parser.parse_args()


def _entries(count: int, place: Path, options: argparse.Namespace) -> list[Entry]:
    places = [(peer, peer.find(options.peers)) for peer in PEERS]
    entries = [
        trivial_jobs.loop(count, place / "loop"),
        trivial_jobs.alone(count, place / "alone"),
        trivial_jobs.matrix(count, place / "matrix"),
        trivial_jobs.recipes(count, place / "files"),
        *(trivial_jobs.peer(peer, path, place / peer.name, count) for peer, path in places if path),
    ]
    return [entry for entry in entries if options.only is None or entry.build.name in (*options.only, LOOP, ALONE)]


def _measure(entries: Sequence[Entry], options: argparse.Namespace) -> Results:
    results: Results = {entry.build.name: {} for entry in entries}
    job = [entry for entry in entries if entry.build.name == ALONE]
    builds = [entry for entry in entries if entry not in job]
    _phase("cold", builds, results, options)
    left = [entry for entry in builds if entry.build.name != LOOP and results[entry.build.name]["cold"]]
    for entry in left:
        once(entry.build)  # the first run after a build may still have to read stat rows
    _phase("no-op", left, results, options)
    _phase("one leaf", [*job, *left], results, options)
    return results


def _phase(phase: str, entries: Sequence[Entry], results: Results, options: argparse.Namespace) -> None:
    """Measure a phase. End with an error if a build ran fewer or more jobs than were due."""
    before = {"cold": lambda e: e.prepare, "no-op": lambda e: e.build.before, "one leaf": lambda e: e.edit}[phase]
    contenders = [dataclasses.replace(entry.build, before=before(entry)) for entry in entries]
    runs = options.cold_runs if phase == "cold" else options.runs
    for entry, took in zip(entries, in_turns(contenders, runs, limit=options.limit).values(), strict=True):
        results[entry.build.name][phase] = took
        jobs_built = {"cold": entry.count, "no-op": 0, "one leaf": 1}[phase]
        if took and not all(entry.did(each, jobs_built) for each in took):
            sys.exit(f"{entry.build.name}: {phase} did not make {jobs_built} jobs")


def _print_size(count: int, results: Results, options: argparse.Namespace) -> None:
    base = results.get(MAKE_R.name, {})
    builds = {who: phases for who, phases in results.items() if who != ALONE}
    rows = [[who, *(_cell(phases, phase, base, options) for phase in PHASES)] for who, phases in builds.items()]
    rows += [[p.name, absent(p), "", ""] for p in PEERS if not p.find(options.peers)]
    print(table([f"{count:,} jobs", "cold", "nothing to do", "one file changed"], rows))
    print()
    loop = median(results[LOOP]["cold"])
    for who in OURS:
        phases = results.get(who, {})
        if any(phases.values()):
            memory = ", ".join(f"{peak(phases[phase])} {phase}" for phase in PHASES if phases.get(phase))
            each = (median(phases["cold"]) - loop) / count
            print(f"- {who}: a cold build takes {duration(each)} per job beyond the loop; the peak memory is {memory}.")
    _print_goals(count, results)
    runs = f"number of cold runs: {options.cold_runs}; number of other runs: {options.runs}"
    print(f"- The times are medians of runs that take turns ({runs}, or 5 if a build takes over a second).")
    print("- The ratios in brackets compare with `make -r`.\n")


def _print_goals(count: int, results: Results) -> None:
    """Print what a build with one changed file takes beyond the changed job, beside the goal."""
    alone = results[ALONE]["one leaf"]
    print(
        f"- {ALONE}, as a Python process that imports the step and runs it, takes {duration(median(alone))} "
        f"({cpu(alone)} of CPU time)."
    )
    for who in OURS:
        took = results.get(who, {}).get("one leaf")
        if took:
            beyond = median(took) - median(alone)
            goal = f"; the goal is {duration(GOALS[count])}" if count in GOALS else ""
            whole = f"{cpu(took)} of CPU time in all"
            print(f"- {who}: one file changed takes {duration(beyond)} beyond the job alone ({whole}){goal}.")


def _cell(phases: dict[str, list[Took]], phase: str, base: dict[str, list[Took]], options: argparse.Namespace) -> str:
    if "no-op" not in phases and phase != "cold" and phases["cold"]:
        return ""  # the plain loop is only measured cold
    if not phases.get(phase):
        return f"no result in {options.limit:g} s"
    took = phases[phase]
    compared = f" ({times(ratio(took, base[phase]))})" if base.get(phase) else ""
    return f"{duration(median(took))}{compared}"


def _print_growth(results: dict[int, Results]) -> None:
    small, large = min(results), max(results)
    rows = []
    for who, phases in results[small].items():
        if who == ALONE:
            continue
        later = results[large].get(who, {})
        both = [(phases.get(phase), later.get(phase)) for phase in PHASES]
        rows.append([who, *(times(median(b) / median(a)) if a and b else "" for a, b in both)])
    print(table([f"{large:,} jobs of {small:,}", "cold", "nothing to do", "one file changed"], rows))
    print()


if __name__ == "__main__":
    os.environ.setdefault("CI", "true")  # print the same text on a terminal as in a log
    main()
