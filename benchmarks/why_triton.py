"""Triton compared with FastAPI: one model in this process, behind FastAPI, behind Triton over HTTP and over gRPC.

    python benchmarks/why_triton.py [--tokens 16 128 mixed] [--seconds 0.8]

The texts have 16 and 128 tokens, or mixed lengths from 8 to 128. There are 1, 8 and 32 clients, and each sends its next
request when it has an answer. The same client code calls both HTTP servers: a thread and a connection per client, JSON
in both directions. The package is served in both layouts: behind an ensemble, and as one Python model (`fused`). A
third build lets `layout: auto` choose between them; the last lines say whether its choice is ever the slower one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import ensemble_overhead
import served
import timing
from served import Package

from engine import server as serving
from engine.kit.bench import stats
from engine.kit.choice import candidates
from engine.kit.choice.candidates import Latency, Lead
from engine.kit.choice.layouts import TimedLayout

Ask = Callable[[str], object]
Client = Callable[[], contextlib.AbstractContextManager[Ask]]
HERE, FASTAPI, HTTP, GRPC = "in this process", "FastAPI", "Triton over HTTP", "Triton over gRPC"
FUSED = "Triton over gRPC, fused"
MIXED = "mixed"
_LENGTHS = (8, 12, 16, 24, 32, 48, 96, 128)
"""The lengths of mixed texts: short ones are more frequent, as in the sentences that clients send."""


@dataclass(frozen=True)
class Round:
    """One round of one contender: the seconds of each request, and the requests answered per second."""

    seconds: Sequence[float]
    rate: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=os.cpu_count() or 1,
                        help="instances of the model in Triton (default: one for each CPU)")  # fmt: skip
    parser.add_argument("--tokens", nargs="+", default=["16", "128", MIXED])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.8, help="seconds per contender and round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        build = partial(served.build, Path(folder) / "project", threads=1, instances=options.instances)
        package, fused, auto = build(), build(layout="fused"), build(layout="auto")
        chosen = FUSED if auto.name == auto.entry else GRPC
        repository = served.joined(Path(folder) / "repository", package, fused)
        server = stack.enter_context(serving.start(repository))
        fastapi = stack.enter_context(served.fastapi(package, threads=1))
        rows, cases = [], {}
        for tokens in options.tokens:
            texts = package.texts(int(tokens)) if tokens != MIXED else mixed(package)
            for clients in options.clients:
                asking = contenders(package, server.http, server.grpc, fastapi)
                asking[FUSED] = partial(ensemble_overhead.over_grpc, server.grpc, fused.entry)
                took = in_turns(asking, texts, clients, rounds=options.rounds, seconds=options.seconds)
                cases[f"{tokens} x {clients}"] = took
                rows += table_rows(took, f"{tokens} x {clients}")
        aside = ", with a stand-in in Python for its ONNX Runtime backend" if server.stand_in else ""
        titles = ("tokens x clients", "", "p50", "p95", "requests a second", "of FastAPI's", "p50, of the ensemble's")
        print(timing.table(titles, rows))
        print(
            f"\nThe numbers are medians of {options.rounds} rounds of {options.seconds:g} s in turns; "
            "the model has one thread. "
            f"Triton {server.version} ({server.kind}{aside}); {served.fastapi_described()}. {timing.machine()}.\n"
        )
        print("\n\n".join(verdict(cases, chosen)))


def contenders(package: Package, rest: str, grpc: str, fastapi: str) -> dict[str, Client]:
    """Return a function per contender that makes a client. Each thread has its own client, except in this process."""
    here = package.by_hand(threads=1)
    return {
        HERE: lambda: contextlib.nullcontext(here),
        FASTAPI: lambda: served.over_http(fastapi, "GET", served.question, lambda _: None),
        HTTP: lambda: served.over_http(rest, "POST", lambda _: f"/v2/models/{package.entry}/infer", _body),
        GRPC: lambda: ensemble_overhead.over_grpc(grpc, package.entry),
    }


def mixed(package: Package) -> list[str]:
    """Return texts of different lengths, in an order in which neighbours differ."""
    by_length = [package.texts(length) for length in _LENGTHS]
    return [text for row in zip(*by_length, strict=True) for text in row]


def in_turns(
    asking: dict[str, Client],
    texts: Sequence[str],
    clients: int,
    *,
    rounds: int,
    seconds: float,
) -> dict[str, list[Round]]:
    """Return the rounds of each contender. Contenders take turns: A B C D, then B C D A, ..."""
    names = list(asking)
    took: dict[str, list[Round]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            took[name].append(closed_loop(asking[name], texts, clients, seconds))
    return took


def closed_loop(make: Client, texts: Sequence[str], clients: int, seconds: float) -> Round:
    """Let `clients` clients send requests for `seconds` seconds. Raises the exception of a client that fails.

    The first two requests of each client open connections, and do not count.
    """
    ready, results, failures = threading.Barrier(clients + 1), [], []

    def client(number: int) -> None:
        try:
            with make() as ask:
                for _ in range(2):
                    ask(texts[number % len(texts)])
                ready.wait(60)
                own, end = [], time.perf_counter() + seconds
                while (begin := time.perf_counter()) < end:
                    ask(texts[(number + len(own)) % len(texts)])
                    own.append(time.perf_counter() - begin)
            results.append(own)
        except Exception as error:  # noqa: BLE001 - the waiting thread raises it
            failures.append(error)
            ready.abort()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        ready.wait(60)
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    every = [took for own in results for took in own]
    return Round(every, len(every) / (time.perf_counter() - begin))


def verdict(cases: Mapping[str, Mapping[str, Sequence[Round]]], chosen: str) -> list[str]:
    """Return whether the layout that `auto` chose is ever the slower one, and how it compares with FastAPI.

    A contender is slower where the whole confidence interval of the other's lead is above 1.
    """
    other = GRPC if chosen == FUSED else FUSED
    slower = {case: lead for case, took in cases.items() if (lead := _lead(took, other, chosen)).is_sure}
    name = "fused" if chosen == FUSED else "ensemble"
    verdict = "It is never slower than the other layout beyond the noise" if not slower else "BROKEN: it is slower"
    lines = [f"**`layout: auto` chooses {name}. {verdict}** ({len(cases)} cases){_listed(slower)}."]
    for first, second, words in ((chosen, FASTAPI, "faster than"), (FASTAPI, chosen, "slower than")):
        sure = {case: lead for case, took in cases.items() if (lead := _lead(took, first, second)).is_sure}
        lines.append(f"It is {words} FastAPI in {len(sure)} of {len(cases)} cases{_listed(sure)}.")
    return lines


def _lead(took: Mapping[str, Sequence[Round]], first: str, second: str) -> Lead:
    """Return how many times as many requests per second the first contender answers, by rounds."""
    timed = [TimedLayout((Latency({}, tuple(1 / each.rate for each in took[name])),)) for name in (first, second)]
    return candidates.lead(*timed)


def _listed(leads: Mapping[str, Lead]) -> str:
    return f": {', '.join(f'{case} ({lead})' for case, lead in leads.items())}" if leads else ""


def table_rows(took: dict[str, list[Round]], case: str) -> list[list[str]]:
    """Return a table row for each contender."""
    rows = []
    for name, rounds in took.items():
        every = [seconds for each in rounds for seconds in each.seconds]
        pairs = zip(rounds, took[FASTAPI], strict=True)
        share = statistics.median(each.rate / theirs.rate for each, theirs in pairs)
        rate = statistics.median(each.rate for each in rounds)
        halves = zip(rounds, took[GRPC], strict=True)
        of_ensemble = statistics.median(
            statistics.median(each.seconds) / statistics.median(other.seconds) for each, other in halves
        )
        cells = [timing.duration(stats.percentile(every, part)) for part in (0.5, 0.95)]
        rows.append([case, name, *cells, f"{rate:.0f}", timing.times(share), timing.times(of_ensemble)])
    return rows


def _body(text: str) -> bytes:
    tensor = {"name": "TEXT", "shape": [1, 1], "datatype": "BYTES", "data": [[text]]}
    return json.dumps({"inputs": [tensor]}).encode()


if __name__ == "__main__":
    main()
