"""One mutation tried: what `why` foretells, what the build makes, and whether the next build has nothing to do."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutations.mutation import Mutation, Rows
from mutations.workplace import HEAVY, Run, Workplace

from engine.errors import Exit

Finding = Mapping[str, object]


def try_it(mutation: Mutation, place: Workplace) -> None:
    """Settle a copy, mutate it, and hold every answer of the program against the mutation's own line."""
    variants = settle(place)
    packages = contents(place.path("build"))
    artifacts = _artifacts(place)
    for action in mutation.action:
        action(place)
    staged = set(_names(place.path("cache/staging")))
    time.sleep(0.05)  # past the clock's tick, as every user is: what is written now is older than the next build
    foretold = _named(place.why(), variants) if mutation.asks_why else None
    run = place.build()
    assert run.code == mutation.exit, f"exit {run.code}\n{run.out}\n{run.talk}"
    rebuilt, ended = _rebuilt(run, variants)
    if foretold is not None:
        _why_named_the_cause(mutation, foretold, ended, rebuilt)
    mended = mutation.rebuilt - rebuilt if mutation.may_be_mended else frozenset()
    assert rebuilt == mutation.rebuilt - mended, _difference(rebuilt, mutation.rebuilt, foretold)
    _packages_are_whole(place, run)
    assert set(_names(place.path("cache/staging"))) <= staged, "work in progress was left in the store"
    if mutation.may_be_mended:
        assert {job: files for job, files in _artifacts(place).items() if job != "bench"} == {
            job: files for job, files in artifacts.items() if job != "bench"
        }
    if not mutation.rebuilt:
        judged = mutation.exit == Exit.JUDGED  # then the package was moved away, and has no marker any more
        kept = contents(place.path("build/.previous" if judged else "build"))
        expected = {name for name in packages if not (judged and name.endswith((".artifact", ".gitignore")))}
        assert {name: content for name, content in kept.items() if name in packages} == {
            name: packages[name] for name in expected
        }
    _again(place, mutation)


def settle(place: Workplace) -> frozenset[str]:
    """Build until a snapshot answers; return the variants' names. A copy in another place makes nothing again."""
    first = place.build()
    assert first.code in (0, 3), first.talk
    rebuilt, _ = _rebuilt(first, frozenset())
    assert not rebuilt, f"the mere copy made {sorted(rebuilt)} again"
    place.ended = {_job(event, frozenset()): event for event in first.events if event["event"] == "end"}
    second = place.build(anew=True)
    assert not second.imported & HEAVY, "no snapshot answered an up-to-date build"
    return frozenset(event["recipe"] for event in first.events if event["event"] == "plan")


def artifacts(run: Run) -> dict[str, str]:
    """Return which artifact each job of each variant has."""
    return {f"{each['recipe']}:{each['job']}": each["artifact"] for each in run.events if each["event"] == "end"}


def contents(folder: Path) -> dict[str, str]:
    """Return the digest of every file under a folder, by its relative path; a folder's is empty."""
    return {
        path.relative_to(folder).as_posix(): "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
    }


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*")]


def _artifacts(place: Workplace) -> dict[str, dict[str, str]]:
    """Return what lies in the artifact of each job that ended well before the mutation."""
    return {job: contents(Path(event["path"])) for job, event in place.ended.items() if event.get("path")}


def _named(findings: Iterable[Finding], variants: frozenset[str]) -> dict[str, Finding]:
    return {_job(finding, variants): finding for finding in findings}


def _job(run: Finding, variants: frozenset[str]) -> str:
    """Return a job as the tables write it: with its variant where there are several."""
    return str(run["job"]) if len(variants) < 2 else f"{run['recipe']}:{run['job']}"


def _rebuilt(run: Run, variants: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the jobs that were made again, and all that ended well.

    Where variants share a job, one makes it and the others find it: it was made for all of them.
    """
    ends = [event for event in run.events if event["event"] == "end"]
    keys = {event["key"] for event in ends if event["state"] == "built"}
    rebuilt = frozenset(_job(event, variants) for event in ends if event.get("key") in keys and event["key"])
    well = frozenset(_job(event, variants) for event in ends if event["state"] in ("built", "cached"))
    return rebuilt, well


def _why_named_the_cause(
    mutation: Mutation, foretold: Mapping[str, Finding], ended: frozenset[str], rebuilt: frozenset[str]
) -> None:
    findings = {job: finding for job, finding in foretold.items() if job in ended}  # a job that waits is none of these
    certain = {job for job, finding in findings.items() if finding["state"] in ("stale", "new")}
    cached = {job for job, finding in foretold.items() if finding["state"] == "cached"}
    unknown = {job for job, finding in foretold.items() if finding["state"] == "unknown"}
    mended = set(mutation.causes) - certain if mutation.may_be_mended else set()
    assert certain | mended == set(mutation.causes), f"why called stale or new: {_rows_of(foretold, certain)}"
    assert not (rebuilt & cached), f"why called cached what was made: {sorted(rebuilt & cached)}"
    assert mutation.may_be_mended or not (certain & ended) - rebuilt, (
        f"why called stale what was cached: {sorted(certain - rebuilt)}"
    )
    assert mutation.may_be_mended or mutation.spreads <= unknown, (
        f"why was sure of {sorted(mutation.spreads - unknown)}"
    )
    for job, rows in mutation.causes.items():
        if job not in certain:
            continue
        _names_exactly(job, {str(change["row"]) for change in foretold[job]["changes"]}, rows)  # type: ignore[attr-defined]


def _names_exactly(job: str, named: set[str], rows: Rows) -> None:
    allowed = (rows,) if isinstance(rows, str) else rows
    for row in allowed:
        assert any(_under(name, row) for name in named), f"why of {job} does not name {row}, but {sorted(named)}"
    beside = {name for name in named if not any(_under(name, row) for row in allowed)}
    assert not beside, f"why of {job} names {sorted(beside)}, too"


def _under(name: str, row: str) -> bool:
    return name == row or name.startswith(f"{row}.")


def _rows_of(foretold: Mapping[str, Finding], jobs: Iterable[str]) -> dict[str, list[str]]:
    return {job: [change["row"] for change in foretold[job]["changes"]] for job in sorted(jobs)}  # type: ignore[attr-defined]


def _difference(rebuilt: frozenset[str], expected: frozenset[str], foretold: Mapping[str, Finding] | None) -> str:
    many, few = sorted(rebuilt - expected), sorted(expected - rebuilt)
    rows = _rows_of(foretold, [job for job in foretold if foretold[job]["changes"]]) if foretold else {}
    return f"made for nothing: {many}; not made: {few}; why: {rows}"


def _packages_are_whole(place: Workplace, run: Run) -> None:
    """Every package is what the store holds of it, byte for byte, and nothing half-made lies beside it."""
    finished = run.events[-1]
    stored = {
        event["recipe"]: Path(event["path"])
        for event in run.events
        if event["event"] == "end" and event["job"] == "package" and event["state"] in ("built", "cached")
    }
    for variant, package in finished["packages"].items():
        assert contents((place.start or place.folder) / package) == contents(stored[variant])
    # A package that the recipe does not vouch for was moved away.
    aside = {".gitignore", ".previous"} if run.code else {".gitignore"}
    halves = [
        path.name for path in place.path("build").glob(".*") if path.suffix != ".artifact" and path.name not in aside
    ]
    assert not halves, f"half a package was left: {halves}"


def _again(place: Workplace, mutation: Mutation) -> None:
    again = place.build(anew=True)
    assert again.code == mutation.exit
    rebuilt, _ = _rebuilt(again, frozenset())
    assert not rebuilt, f"the next build made {sorted(rebuilt)} again"
    if mutation.exit in (0, 3):
        assert not again.imported & HEAVY, f"the next build was not answered by the snapshot: {again.talk}"
