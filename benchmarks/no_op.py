"""A no-op build of the MiniLM recipe, compared with Python's own start and with other tools on equal files."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import recipe_program as program
from build_tools import DOIT, DVC, MAKE, NINJA, SNAKEMAKE, Peer, Work, absent
from timing import Contender, Took, duration, in_turns, least, machine, median, once, ratio, table, times

PEERS = (MAKE, NINJA, DOIT, DVC, SNAKEMAKE)
PASS = "python -c pass"
OURS = "recipe build"


def main() -> None:
    """Build once, time no-op builds in turns, and print the table."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        place = (options.work or Path(scratch)).resolve()
        ours = Contender(OURS, [*program.command(), "build", program.RECIPE], place / "ours", program.environment())
        works = _pipeline(place, ours)
        contenders = [Contender(PASS, [sys.executable, "-c", "pass"], place / "ours", ours.environment), ours]
        missing: list[Peer] = []
        for peer in PEERS:
            path = peer.find(options.peers)
            if path is None:
                missing.append(peer)
            else:
                contenders.append(_built(peer, path, place, works))
        once(ours)  # the first run after a build may still have to read stat rows
        results = in_turns(contenders, options.runs)
    versions = {peer.name: peer.version(path) for peer in PEERS if (path := peer.find(options.peers))}
    _print(results, versions, missing, works)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="rounds; tools that take over a second get 5 (40)")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="a bin folder to look for the other tools in first")
    parser.add_argument("--work", type=Path, metavar="DIR", help="keep the built project here for the next time")
    return parser.parse_args()


def _pipeline(place: Path, ours: Contender) -> list[Work]:
    """Build the recipe if it is not built, and return its jobs as work for the other tools.

    The files that a job reads from outside the store lie under `sources`. The other tools copy a job's output from
    `made` to `out`.
    """
    program.project(place / "ours")
    once(ours)
    events = program.events(once(_with_json(ours)).output)
    [plan] = [event for event in events if event["event"] == "plan"]
    artifacts = {event["job"]: Path(event["path"]) for event in events if event["event"] == "end"}
    files = {job: _files(path) for job, path in artifacts.items()}
    for job, path in artifacts.items():
        shutil.copytree(path, place / "made" / job, dirs_exist_ok=True)
    shutil.copytree(artifacts["fetch"], place / "sources" / "model", dirs_exist_ok=True)
    shutil.copytree(place / "ours" / "recipes" / "samples", place / "sources" / "samples", dirs_exist_ok=True)
    outside = {
        "fetch": [f"sources/model/{name}" for name in files["fetch"]],
        "reference": [f"sources/samples/{name}" for name in _files(place / "sources" / "samples")],
    }
    return [
        Work(
            name=job["job"],
            reads=tuple(
                [f"out/{needed}/{name}" for needed in job["needs"] for name in files[needed]]
                + outside.get(job["job"], [])
            ),
            writes=tuple(f"out/{job['job']}/{name}" for name in files[job["job"]]),
            command=f"mkdir -p out/{job['job']} && cp -R {place}/made/{job['job']}/. out/{job['job']}",
        )
        for job in plan["jobs"]
    ]


def _with_json(ours: Contender) -> Contender:
    return Contender(ours.name, [*ours.command, "--json"], ours.folder, ours.environment)


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def _built(peer: Peer, path: str, place: Path, works: list[Work]) -> Contender:
    """Run a tool's first build, and return its no-op build."""
    folder = place / peer.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copytree(place / "sources", folder / "sources")
    peer.prepare(path, folder, works)
    once(peer.contender(path, folder, cores=1))
    return peer.contender(path, folder, cores=1)


def _print(results: dict[str, list[Took]], versions: dict[str, str], missing: list[Peer], works: list[Work]) -> None:
    rows = [
        [
            f"{name} {versions.get(name, '')}".strip(),
            duration(median(took)),
            duration(least(took)),
            times(ratio(took, results[PASS])),
            times(ratio(took, results[OURS])),
            str(len(took)),
        ]
        for name, took in results.items()
    ]
    rows += [[peer.name, absent(peer), "", "", "", ""] for peer in missing]
    count = sum(len(work.writes) for work in works)
    print(table(["nothing to do", "median", "least", "of python", "of recipe", "runs"], rows))
    print(f"\nThe build has {len(works)} jobs, which wrote {count} files. {machine()}; {program.described()}.")


if __name__ == "__main__":
    os.environ.setdefault("CI", "true")  # print the same text on a terminal as in a log
    main()
