"""What people run MiniLM with on a CPU, beside what `recipe build` makes: times in turns, and accuracy.

    python benchmarks/peers.py --into docs/measured.md

Environments of other tools are made once with pinned packages and kept, as are the models that the tools build.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import into_readme
import onnx
import recipe_program as program
from timing import machine

sys.path.append(str(program.ROOT))

from frontier import bars, environments, instructions, load, measuring, texts
from frontier.accuracy import Accuracy
from frontier.building import FP32_PEERS, PEERS, Building
from frontier.contenders import Contender
from frontier.measuring import Timings
from frontier.seats import SeatError
from frontier.standings import CSV, Standings
from frontier.subjects import SUBJECTS, TextInputs

from engine.kit.inputs import bench_inputs

PRECISIONS = ("fp32", "int8")
RUNTIMES = {"fp32": ("onnxruntime", "auto"), "int8": ("onnxruntime", "openvino", "auto")}
"""The packages of ours; the last of each precision is compared with the peers, unless `--ours` names another."""
TABLE, PICTURE = program.ROOT / "benchmarks" / "peers.csv", program.ROOT / "docs" / "pictures" / "peers.svg"
_WATCHED = 3.0
"""Seconds for which the machine must be idle before it is asked to measure."""


def main() -> None:
    """Build, compare and time the contenders; print the tables, or write them. Exits with 1 if the machine is busy."""
    options = _options()
    with contextlib.redirect_stdout(sys.stderr):
        contest = Contest(options)
        contest.build()
        contest.build_peers()
        contest.compare()
        busy = 0.0 if options.quick else _busy()
        busy = busy or contest.time()
    if busy and not options.quick:
        sys.exit(f"other processes used {busy:.2f} cores, and at most {load.ALLOWED} are allowed: no table")
    standings = contest.standings()
    text = "\n\n".join(contest.report(standings))
    if options.into is None or options.quick:
        print(text)
        return
    with TABLE.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([CSV, *(row for each in standings for row in each.rows())])
    PICTURE.write_text(bars.drawn(standings, "Times of MiniLM on a CPU"))
    picture = f"![The times of the tables](pictures/{PICTURE.name})"
    figures = f"The same figures are in [{TABLE.name}](../benchmarks/{TABLE.name})."
    into_readme.put(options.into, Path(__file__).name, f"{picture}\n\n{text} {figures}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", nargs="+", type=Path, default=[], metavar="RECIPE", help="further recipes of MiniLM")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="peers whose names contain NAME")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="peers to build again, by their names")
    parser.add_argument("--shapes", nargs="+", default=["1x16", "1x128", "8x128"], help="batch and tokens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processes", type=int, default=3, help="fresh processes of each contender (3)")
    parser.add_argument("--rounds", type=int, default=10, help="in each process (10)")
    parser.add_argument("--seconds", type=float, default=2.0, help="a contender at a shape in a process (2)")
    parser.add_argument("--sentences", type=int, default=300, help="for the accuracy (300)")
    parser.add_argument("--work", type=Path, default=environments.FOLDER / "peers", help="keeps what was built")
    parser.add_argument("--environments", type=Path, default=environments.FOLDER, help="of other tools, kept")
    parser.add_argument("--into", type=Path, help="a page with a mark for this script (default: print)")
    parser.add_argument("--quick", action="store_true", help="a trial: few calls, also on a busy machine; only prints")
    options = parser.parse_args()
    if options.quick:
        options.processes, options.rounds, options.seconds, options.sentences = 1, 4, 0.4, 24
    return options


def _busy() -> float:
    """Return the cores that other processes use now; 0 where they are few."""
    with load.Watch() as watch:
        time.sleep(_WATCHED)
    return watch.others if watch.others > load.ALLOWED else 0.0


class Contest:
    """The contenders of both precisions, and what was measured of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.subject = options, SUBJECTS["minilm"]
        self.folder: Path = options.work.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.building = Building(
            self.folder, self.subject, options.again, isa=instructions.target(), environments=options.environments
        )
        self.contenders: dict[str, list[Contender]] = {precision: [] for precision in PRECISIONS}
        self.accuracies: dict[str, dict[str, Accuracy]] = {precision: {} for precision in PRECISIONS}
        self.timings: dict[str, dict[str, Timings]] = {}
        self.failures: list[str] = []

    def build(self) -> None:
        """Build our packages, and export the model; what cannot be built says why."""
        samples = self.folder / "project" / "recipes" / "samples"
        sentences, self.calibration = texts.held_out(self.folder, self.options.sentences, samples)
        self.inputs = TextInputs(self.subject, sentences)
        for precision in PRECISIONS:
            for runtime in RUNTIMES[precision]:
                more = {"samples": samples / "sentences.jsonl", "calibration": None, "precision": precision}
                self._add(precision, self.building.ours(runtime, fixed=self.options.shapes, **more))
        for recipe in self.options.ours:
            for precision, contender in self.building.of_recipe(recipe.resolve()):
                self._add(PRECISIONS[precision != PRECISIONS[0]], contender)
        if self.building.exported is None:
            sys.exit(f"recipe build exported no model: {self.contenders['fp32'][0].absent}")

    def build_peers(self) -> None:
        """Build what others make; what cannot be built says why."""
        made = [self.building.eager(), self.building.eager(compiled=True), self.building.plain()]
        for contender in (*made, self.building.openvino()):
            if self._takes_part(contender.name):
                self._add("fp32", contender)
        unfit = {"avx512_vnni"} if instructions.target() else {"avx2"}
        for precision, peers in zip(PRECISIONS, (FP32_PEERS, PEERS), strict=True):
            for peer in peers:
                # Static ranges are slower than dynamic ones in ONNX Runtime and far from exact: see cpu_frontier.py.
                if self._takes_part(peer.name) and not {"static", *unfit} & set(peer.arguments):
                    self._add(precision, self.building.peer(peer, self.calibration))

    def compare(self) -> None:
        """Compare the answers of all contenders with those of PyTorch in fp32."""
        original, answers = self.building.eager(), self.folder / "answers"
        for precision in PRECISIONS:
            for each in self._ready(precision):
                try:
                    accuracy = measuring.compared(each, original, self.inputs, answers, None)
                    self.accuracies[precision][each.name] = accuracy
                    print(f"{precision}, {each.name}: cosine {accuracy.mean:.4f}, worst {accuracy.least:.4f}")
                except SeatError as error:
                    self.failures.append(f"{precision}: the accuracy of {each.name}: {error}")

    def time(self) -> float:
        """Time the contenders, each precision apart; return the most cores of others if they were too many, else 0."""
        options = self.options
        graph = onnx.load(self.building.exported, load_external_data=False)
        inputs = {shape: bench_inputs.draw(graph, self.subject.sizes(shape)) for shape in options.shapes}
        for precision in PRECISIONS:
            self.timings[precision], failures = measuring.timed(
                self._ready(precision),
                inputs,
                self.folder,
                threads=options.threads,
                processes=options.processes,
                rounds=options.rounds,
                seconds=options.seconds,
                clock="wall",
                tries=1 if options.quick else measuring.TRIES,
            )
            self.failures += [f"{precision}: {each}" for each in failures]
        timings = [each for shapes in self.timings.values() for each in shapes.values()]
        return max((each.others for each in timings if each.busy), default=0.0)

    def standings(self) -> list[Standings]:
        """Return what was measured, for each precision."""
        return [
            Standings(each, self._ours(each), self.contenders[each], self.accuracies[each], self.timings[each])
            for each in PRECISIONS
        ]

    def report(self, standings: list[Standings]) -> Iterator[str]:
        """Yield the tables and the words below them."""
        yield from (each.markdown() for each in standings)
        lines = [line for each in standings for line in each.words()]
        yield "\n".join(f"- {line}" for line in (*lines, *self.failures))
        options = self.options
        ours = ", ".join(f"{each.ours} ({each.precision})" for each in standings)
        versions = {each.versions for group in self.contenders.values() for each in group if each.versions}
        yield (
            f"{options.threads} threads; medians of {options.rounds} rounds in turns in each of {options.processes} "
            f"fresh processes a contender. Ours is {ours}; a ratio is the median of paired ratios with its 95 % "
            f"interval. Cosines: {options.sentences} sentences, beside PyTorch. {machine()}; "
            f"{' '.join(sorted(instructions.here()))}. {'; '.join(sorted(versions))}."
        )

    def _ours(self, precision: str) -> str:
        return [each.name for each in self._ready(precision) if each.kind == "ours"][-1]

    def _takes_part(self, name: str) -> bool:
        return not self.options.only or any(each.lower() in name.lower() for each in self.options.only)

    def _add(self, precision: str, contender: Contender) -> None:
        print(f"{precision}, {contender.name}: {contender.absent or contender.path}")
        self.contenders[precision].append(contender)

    def _ready(self, precision: str) -> list[Contender]:
        return [each for each in self.contenders[precision] if not each.absent]


if __name__ == "__main__":
    main()
