"""A search of toy models: real keys, records and workers, and figures that follow from the options of the jobs.

As a program it searches in the folder that the command line names: `toy_search.py FOLDER TRIALS`. It prints the key of
each job that it runs, and at the end the front and the choice.
"""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

from search_steps import Figures, Made, Prepare, ToyRace
from small_builds import project_in, start, variant

from engine.digest import Digest
from engine.errors import JudgementError, UsageError
from engine.events import Ended
from engine.kit.accuracy.report import AccuracyReport, Worst
from engine.kit.bench.race import P50, P95, ROWS_PER_S, RaceReport, RaceRow
from engine.kit.bench.stats import Lead
from engine.runtimes.knobs import Knob
from engine.tuning.objective import Objective
from engine.tuning.search import Search
from engine.tuning.space import Space
from engine.tuning.trials import Raced

SPACE = Space((
    Knob("runtime", ("slow", "quick"), written=True),
    Knob("precision", ("high", "low", "lowest"), written=True),
    Knob("tiles", (0, 1, 2, 3, 4, 5), written=True),
    Knob("levels", (0, 1, 2), {"runtime": ("quick",)}, written=True),
    Knob("copies", (1, 2, 3, 4), written=True),
))  # fmt: skip
REFUSED = 5
"""The value of `tiles` that no plan can have."""
BOUND = 0.9


class ToyTrials:
    """The builds of a search, in memory or, with a folder, as jobs; `ran` has the keys of the jobs that ran."""

    noise = 0.02
    """How far the interval of a lead reaches to both sides."""

    def __init__(self, folder=None, on_run=lambda key: None):
        self.folder = folder
        self.ran = []
        self.names = []
        self._on_run = on_run

    def build(self, point):
        figures = Figures(**point)
        if figures.tiles == REFUSED:
            return self._built(point, None, error=UsageError("no such tiles"))
        records = self._records(Prepare(), self._made(figures))
        worst = {"high": 1.0, "low": 0.95, "lowest": 0.8}[figures.precision]
        cosine = Worst(worst=worst, mean=(1 + worst) / 2, sample="a", text="")
        accuracy = AccuracyReport(cases=70, kinds={"sample": 64, "batched": 6}, random=False, cosine=cosine)
        error = JudgementError(f"cosine {worst} is below {BOUND}") if worst < BOUND else None
        size = {"high": 400, "low": 100, "lowest": 50}[figures.precision]
        return self._built(point, "planned", error=error, records=records, accuracy=accuracy, size=size)

    def ident(self, built, sizes):
        """Each point is a model of its own."""

    def race(self, points, *, sizes, by, cut):
        every = [Figures(**point) for point in points]
        race = ToyRace(contestants=tuple(every), cut=cut)
        record = self._records(Prepare(), self._made(every[0]), race)["toy-race"]
        first, *_ = times = record.report["milliseconds"]
        rows = [self._row(own, first / own, cut=cut, is_first=not number) for number, own in enumerate(times)]
        return Raced(RaceReport(cpu="toy", rows=tuple(rows)), record)

    def _row(self, own, lead, *, cut, is_first):
        leads = {} if is_first else dict.fromkeys(
            (P50, P95, ROWS_PER_S), Lead(lead, (lead * (1 - self.noise), lead * (1 + self.noise)))
        )  # fmt: skip
        return RaceRow(
            runtime="toy", shape={"batch": 1}, rows=1, instances=1, threads=1, p50_ms=own, p95_ms=own, p99_ms=own,
            rounds=10, mean_ms=own, runs=10, noise=0.0, via="in-process", ours=is_first,
            ratio_to={}, was_cut=cut is not None and 1 / lead > cut, leads=leads,
        )  # fmt: skip

    def _made(self, figures):
        return Made(**figures.model_dump(exclude={"copies"}))

    def _records(self, *steps):
        if self.folder is None:
            return {step.step_name(): _record(step) for step in steps}
        records = {}
        events, lookup = start(self.folder, variant(self.folder, *steps), slots=1)
        for event in events:
            if isinstance(event, Ended):
                assert event.state in ("cached", "built"), event
                records[event.job] = lookup.store.read(Digest(event.key))
                if event.state == "built":
                    self.ran.append(event.key)
                    self.names.append(event.job)
                    self._on_run(event.key)
        return records

    def _built(self, point, variant, *, error=None, records=(), accuracy=None, size=None):
        return SimpleNamespace(point=point, variant=variant, error=error, waits_for=None, records=dict(records),
                               accuracy=accuracy, size=size)  # fmt: skip


def _record(step):
    report = {"milliseconds": [each.milliseconds for each in getattr(step, "contestants", ())]}
    return SimpleNamespace(digest=f"{step.step_name()} {step!r}", seconds=1.0, report=report)


def search(trials, *, most=math.inf, budget=math.inf, objective=None):
    objective = objective or Objective("p95_ms", {"batch": 1}, {"cosine": BOUND}, {})
    return Search("toy", trials, SPACE, objective, most, budget)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(exist_ok=True)
    trials = ToyTrials(project_in(place), on_run=lambda key: print("ran", key, flush=True))
    result = search(trials, most=int(sys.argv[2])).run()
    print("result", json.dumps({**result.to_json(), "seconds": None}), flush=True)
