"""Shared by all benchmarks: timing whole processes in turns, and printing Markdown tables of the times."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.machine.cpu import model as cpu_model

SLOW_SECONDS = 1.0
"""The limit, in seconds, above which a process is repeated less often than a process of milliseconds."""
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Contender:
    """A command to time. `before` runs first and is not timed."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    before: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Took:
    """The cost of a process from its start to its end, including the processes that it waited for.

    The peak memory is that of the largest of these processes. The peak memory is at least the benchmark's own memory
    at the start of the process.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: bytes
    turn: int = 0
    """The number of the round in which the process ran."""


class OverLimitError(Exception):
    """A process was stopped because it ran longer than the limit."""


def once(contender: Contender, limit: float | None = None) -> Took:
    """Run a contender to its end. Raises OverLimitError. If the command fails, its output ends the benchmark."""
    contender.before()
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            contender.command,
            cwd=contender.folder,
            env=dict(contender.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        watchdog = threading.Timer(limit or threading.TIMEOUT_MAX, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.daemon = True
        if limit is not None:
            watchdog.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # the process has its own session and survives an interrupt
            raise
        finally:
            seconds = time.perf_counter() - started
            watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        content = output.read()
    if limit is not None and seconds >= limit:
        raise OverLimitError(contender.name)
    if process.returncode != 0:
        words = content.decode("utf-8", "replace")[-2000:]
        sys.exit(f"{contender.name} failed with exit code {process.returncode}: {' '.join(contender.command)}\n{words}")
    return Took(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT, content)


def in_turns(
    contenders: Sequence[Contender], runs: int, *, slow_runs: int = 5, limit: float | None = None
) -> dict[str, list[Took]]:
    """Return the runs of each contender. Contenders take turns: A B C, then B C A, ...

    A contender that takes longer than SLOW_SECONDS runs only in `slow_runs` rounds, spread over all rounds. A contender
    that exceeds the limit has no results.
    """
    results: dict[str, list[Took]] = {each.name: [] for each in contenders}
    out: set[str] = set()
    for number in range(runs):
        first = number % len(contenders)
        for each in (*contenders[first:], *contenders[:first]):
            took = results[each.name]
            slow = bool(took) and median(took) > SLOW_SECONDS
            if each.name in out or (slow and number % max(1, runs // slow_runs)):
                continue
            try:
                took.append(replace(once(each, limit), turn=number))
            except OverLimitError:
                took.clear()
                out.add(each.name)
    return results


def median(took: Iterable[Took]) -> float:
    """Return the median seconds of some runs."""
    return statistics.median(each.seconds for each in took)


def add_text_shapes(parser: argparse.ArgumentParser) -> None:
    """Add the options with the shapes and the threads at which a benchmark calls a model of texts."""
    parser.add_argument("--shapes", nargs="+", default=["1x16", "1x128", "8x128"], help="batch and tokens")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])


def text_shape(shape: str) -> tuple[int, int]:
    """Return the batch and the number of tokens of a shape such as "8x128"."""
    batch, tokens = map(int, shape.split("x"))
    return batch, tokens


def median_of_calls(call: Callable[[], object], seconds: float) -> float:
    """Return the median seconds of a call that is repeated for `seconds`, after one call that does not count."""
    call()
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        call()
        took.append(time.perf_counter() - started)
    return statistics.median(took)


def least(took: Iterable[Took]) -> float:
    """Return the seconds of the fastest run."""
    return min(each.seconds for each in took)


def cpu(took: Iterable[Took]) -> str:
    """Return the median CPU time of some runs, over all processors."""
    return duration(statistics.median(each.cpu_seconds for each in took))


def ratio(took: Iterable[Took], base: Iterable[Took]) -> float:
    """Return how many times longer than `base` some runs took: the median over the rounds in which both ran."""
    return statistics.median(ratios(took, base))


def ratios(took: Iterable[Took], base: Iterable[Took]) -> list[float]:
    """Return the ratio for each round in which both ran, smallest first."""
    beside = {each.turn: each.seconds for each in base}
    return sorted(each.seconds / beside[each.turn] for each in took if each.turn in beside)


def peak(took: Iterable[Took]) -> str:
    """Return the largest peak memory in words."""
    return f"{max(each.peak_bytes for each in took) / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """Return seconds with three digits: `12.3 ms`, `4.56 s`."""
    value, unit = (seconds * 1e3, "ms") if seconds < 1 else (seconds, "s")
    places = 2 if value < 10 else 1 if value < 100 else 0  # noqa: PLR2004 - three digits in all
    return f"{value:.{places}f} {unit}"


def times(ratio: float) -> str:
    """Return a ratio with three digits: `1.23 x`, `12.3 x`."""
    places = 2 if ratio < 10 else 1 if ratio < 100 else 0  # noqa: PLR2004 - three digits in all
    return f"{ratio:.{places}f} x"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """Return the machine and the interpreter in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}"
    return f"{cpu_model()}, {cores} cores, {memory:.0f} GiB; {system}; Python {platform.python_version()}"
