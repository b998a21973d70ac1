"""Interleaving: times contenders in turns, so that a disturbance of the machine reaches all of them alike."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import repeat
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from engine.kit.bench import stats
from engine.kit.bench.report import BenchRow
from engine.kit.bench.sample_report import SampleFigures
from engine.runtimes.recipes import IN_PROCESS
from engine.runtimes.runner import CapturedGraph, Runner

if TYPE_CHECKING:
    import numpy as np

    from engine.runtimes.runner import DeviceTimes

    Tensors = Mapping[str, np.ndarray]

T = TypeVar("T")
Call = Callable[[], object]
Clock = Callable[[], float]
Rounds = list[list[float]]
"""The times of the calls of one contender: a list for each round."""
TimedRow = tuple[BenchRow, Rounds]
"""A row of a report, and the milliseconds of its calls."""
_REST = 0.06
"""Seconds without calls before a turn.

After each call, the threads of ONNX Runtime 1.31 wait in a loop for work: for 0.036 s of CPU time on an AMD EPYC. A
call of another contender that begins meanwhile lacks a core.
"""
_OTHERS = 64 << 20
"""Bytes of other memory that pass through the caches before a paused call, as if another program ran meanwhile."""
PAUSE_MS = round(_REST * 1e3)
"""Milliseconds of the pause before a paused call."""


class TimedCalls(NamedTuple):
    """The seconds of calls of one contender, and for each round what its threads waited for a CPU (`with_wait`)."""

    hot: Rounds
    """Calls in a loop."""
    paused: list[float]
    """The first call of each round, after a pause in which others used the caches; none where a call fills a turn."""
    waited: list[float]


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A model that is timed, and how it is called: in this process or through a server.

    `prepare` takes the inputs, does all work that is not timed, and returns the function that is timed. The timed
    function runs inside the context that `active` returns.
    """

    runtime: str
    via: str
    ours: bool
    """Whether this is the recipe's own model, run as it is by default. All other contenders are compared with it."""
    prepare: Callable[[Tensors], Call]
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    device_times: Callable[[Tensors], DeviceTimes] | None = None
    """Measures one call on the GPU by CUDA events; None where the runtime cannot, on CPUs and through a server."""
    other_way: bool = False
    """Whether this is the recipe's own model, run in the other way: with a CUDA graph, or without."""
    graph: CapturedGraph | None = None
    """The CUDA graph that calls replay; None for calls without one."""
    copies: tuple[Contender, ...] = ()
    """Further copies of the model. In a turn all copies are called at once, each in a thread of its own."""

    def __str__(self) -> str:
        return self.runtime if self.via == IN_PROCESS else f"{self.runtime} {self.via}"

    @classmethod
    def in_process(cls, runner: Runner, *, ours: bool = False) -> Self:
        """Return the contender that runs a model in this process."""
        return cls(
            runtime=runner.name,
            via=IN_PROCESS,
            ours=ours,
            prepare=runner.prepare,
            active=runner.active,
            device_times=runner.device_times,
        )


@dataclass(frozen=True)
class Budget:
    """The seconds that a measurement of all contenders together may take, and its number of rounds.

    A p99 needs at least a hundred runs. A slow model gets fewer runs than a fast model, but at least one run in each
    round.
    """

    seconds: float = 8.0
    warm_up: float = 2.0
    rounds: int = 10
    most_runs: int = 1000

    def longer(self, factor: int) -> Budget:
        """Return a budget with `factor` times as many rounds of the same length."""
        return replace(
            self, seconds=self.seconds * factor, rounds=self.rounds * factor, most_runs=self.most_runs * factor
        )


_SETTLING = 2
"""Calls at the start of a turn that are not timed, because the caches still hold another model's weights."""
_STABLE = 0.05
"""The warm-up ends with a batch whose median is less than 5 % below the best median so far, and whose p75 lies at
most 10 % above its p25."""
_BATCH = 5
"""Calls in a batch of the warm-up; the warm-up compares each batch's latencies with those of the batches before."""
_RAW_DIGITS = 3
"""Decimal places of each single latency in milliseconds in latencies.json: whole microseconds."""


def bench_rows(
    axes: Mapping[str, int],
    inputs: Tensors,
    contenders: Sequence[Contender],
    budget: Budget,
    *,
    clock: Clock = time.perf_counter,
) -> list[TimedRow]:
    """Return the row and the latencies of each contender.

    The row of the recipe's own model says how many times longer each rival takes that is called in the same way
    (`via`). The measurement takes longer where some contenders run on a server, so that the contenders in process keep
    their time.
    """
    share = len(contenders) / max(1, sum(each.via == IN_PROCESS for each in contenders))
    longer = replace(budget, seconds=budget.seconds * share, warm_up=budget.warm_up * share)
    timed = measure(contenders, inputs, longer, clock=clock)
    rows = []
    for contender, calls in zip(contenders, timed, strict=True):
        ratios = {
            other.runtime: stats.ratios(theirs.hot, calls.hot)
            for other, theirs in zip(contenders, timed, strict=True)
            if contender.ours and not other.ours and other.via == contender.via
        }
        rows.append(timed_row(contender, calls, shape=axes, ratios=ratios))
    return rows


def timed_row(
    contender: Contender,
    calls: TimedCalls,
    *,
    shape: Mapping[str, int | str],
    ratios: Mapping[str, Sequence[float]],
    samples: SampleFigures | None = None,
) -> TimedRow:
    """Return the row of a contender from its calls; `ratios` has for each rival a ratio per round."""
    rounds_ms = [[value * 1e3 for value in values] for values in calls.hot]
    row = BenchRow.of_rounds(
        rounds_ms,
        ratios=ratios,
        paused_ms=[value * 1e3 for value in calls.paused],
        waited=round(stats.median(calls.waited), stats.RATIO_DIGITS),
        shape=dict(shape),
        via=contender.via,
        runtime=contender.runtime,
        ours=contender.ours,
        samples=samples,
        other_way=contender.other_way,
        graph=contender.graph,
    )
    return row, [[round(value, _RAW_DIGITS) for value in values] for values in rounds_ms]


def measure(
    contenders: Sequence[Contender],
    inputs: Tensors,
    budget: Budget,
    *,
    out: Callable[[Sequence[Rounds]], Collection[int]] = lambda _: (),
    clock: Clock = time.perf_counter,
) -> list[TimedCalls]:
    """Return the seconds of the calls of each contender: in a loop, and after a pause.

    Before the first round each contender is warmed up until its latency is stable. A turn ends early where it takes
    twice its time. After each round `out` gets the hot calls so far, and returns the indices of the contenders that are
    timed no further.
    """
    import numpy as np

    share = 1 / len(contenders)
    turn = budget.seconds * share / budget.rounds
    lanes = [[(each, each.prepare(inputs)) for each in (contender, *contender.copies)] for contender in contenders]
    timed = [TimedCalls([], [], []) for _ in contenders]
    others = np.zeros(_OTHERS, dtype=np.uint8)
    with ThreadPoolExecutor(max(map(len, lanes))) as threads:

        def at_once(lane: Sequence[tuple[Contender, Call]], work: Callable[[Call], T]) -> list[T]:
            """Do some work with the calls of all copies of a model at once, each in the context of its copy."""

            def do(copy: tuple[Contender, Call]) -> T:
                contender, call = copy
                with contender.active():
                    return work(call)

            return list(map(do, lane) if len(lane) == 1 else threads.map(do, lane))

        plans = []
        for lane in lanes:
            usual = max(at_once(lane, lambda call: _warm_up(call, budget.warm_up * share, clock)))
            fitting = int(turn / usual)
            # A call that fills a turn gets no settling: cold caches add little to it, and a call doubles the time.
            settling = _SETTLING if fitting > 1 else 0
            plans.append((settling, max(1, min(budget.most_runs // budget.rounds, fitting - settling))))
        for index in turns(budget.rounds, len(contenders), out=lambda: out([each.hot for each in timed])):
            settling, runs = plans[index]
            np.add(others, 1, out=others)
            calls, end = settling + runs, clock() + 2 * turn
            took, waited = with_wait(
                lambda: at_once(lanes[index], lambda call: times(repeat(call, calls), clock, end=end)),  # noqa: B023
                clock,
            )
            timed[index].waited.append(waited)
            timed[index].hot.append([value for each in took for value in each[settling:] or each[-1:]])
            if min(map(len, took)) > 1:
                timed[index].paused.append(stats.median([each[0] for each in took]))
    return timed


def _warm_up(call: Call, seconds: float, clock: Clock) -> float:
    """Call a model until its latency is stable or `seconds` are over; return the median latency of the last calls."""
    end = clock() + seconds
    batch = times([call], clock)
    best = stats.median(batch)
    while clock() < end:
        batch = times(repeat(call, _BATCH if best * _BATCH < seconds else 1), clock)
        middle = stats.median(batch)
        is_even = stats.percentile(batch, 0.75) <= stats.percentile(batch, 0.25) * (1 + 2 * _STABLE)
        if middle > best * (1 - _STABLE) and is_even:
            return middle
        best = min(best, middle)
    return best


def times(calls: Iterable[Call], clock: Clock, *, end: float = inf) -> list[float]:
    """Return the seconds of each call; after the time `end` of the clock, no further call begins."""
    took: list[float] = []
    for call in calls:
        if took and clock() >= end:
            break
        begin = clock()
        call()
        took.append(clock() - begin)
    return took


def with_wait(work: Callable[[], T], clock: Clock) -> tuple[T, float]:
    """Do some work; return its result, and how long threads waited for a CPU meanwhile, as a share of its time.

    That is the sum over all threads of this process; 0 where the system does not tell, as on macOS.

    Source: the second number of `schedstat`, in Documentation/scheduler/sched-stats.rst of Linux.
    """
    before, began = _waited(), clock()
    result = work()
    return result, max(0.0, _waited() - before) / max(clock() - began, 1e-9)


def _waited() -> float:
    seconds = 0.0
    for path in glob.glob("/proc/self/task/*/schedstat"):
        with suppress(OSError):  # the thread has ended
            seconds += int(Path(path).read_text("ascii").split()[1]) / 1e9
    return seconds


def turns(rounds: int, count: int, *, out: Callable[[], Collection[int]] = tuple) -> Iterator[int]:
    """Yield the index of the contender whose turn it is, of `count` contenders in each of the rounds, after a rest.

    The order changes from round to round (`turn_order`). After each round `out` returns who has no further turn.
    """
    left = list(range(count))
    for number in range(rounds):
        for place in turn_order(number, len(left)):
            time.sleep(_REST)
            yield left[place]
        gone = out()
        left = [index for index in left if index not in gone]


def turn_order(number: int, count: int) -> list[int]:
    """Return the indices of `count` contenders in the order of their turns in round `number`, which counts from 0.

    What ran before a call changes its time, for example because its weights still fill the caches. So a contender must
    not always follow the same one. Over `count` rounds, or twice as many where `count` is odd, all contenders go first
    equally often, and each comes right after each of the others equally often.

    Source: E. J. Williams, Experimental designs balanced for the estimation of residual effects of treatments (1949).
    """
    zigzag = [(index + 1) // 2 if index % 2 else (count - index // 2) % count for index in range(count)]
    odd = count % 2
    shift = number // 2 if odd else number
    turns = [(index + shift) % count for index in zigzag]
    return turns[::-1] if odd and number % 2 else turns
