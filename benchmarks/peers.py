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
from dataclasses import replace
from pathlib import Path

import into_readme
import recipe_program as program
from timing import machine

sys.path.append(str(program.ROOT))

from frontier import bars, contest, environments, instructions, load, measuring, texts
from frontier.building import FP32_PEERS, OURS, PEERS, Building
from frontier.contest import Group
from frontier.measuring import Timings
from frontier.standings import CSV, Standings
from frontier.subjects import SUBJECTS, TextInputs

PRECISIONS = ("fp32", "int8")
DEFAULT = "OpenVINO, NNCF default"
RUNTIMES = ("onnxruntime", "openvino", "auto")
"""The packages of ours; `auto` is compared with the peers, unless `--ours` names another."""
LEFT_OUT = frozenset({
    "Olive, static int8", "ONNX Runtime, quantize_static",  # slower than dynamic int8, far from exact: cpu_frontier.py
    "Optimum, O2", "TorchScript, dynamic int8",  # O3 has all of O2; int8 in PyTorch is beside Optimum's and Olive's
})  # fmt: skip
TABLE, PICTURE = program.ROOT / "benchmarks" / "peers.csv", program.ROOT / "docs" / "pictures" / "peers.svg"
_WATCHED = 3.0
"""Seconds for which the machine must be idle before it is asked to measure."""


def main() -> None:
    """Build, compare and time the contenders; print the tables, or write them. Exits with 1 if the machine is busy."""
    options = _options()
    with contextlib.redirect_stdout(sys.stderr):
        contest = Contest(options)
        busy = 0.0 if options.quick else _busy()  # a build measures runtimes, too
        if not busy:
            contest.build()
            contest.build_peers()
            contest.compare()
            busy = contest.time()
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
    contest.add_options(parser, processes=2, sentences=200)
    parser.add_argument("--shapes", nargs="+", default=["1x16", "1x128", "8x128"], help="batch and tokens")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=environments.FOLDER / "peers", help="keeps what was built")
    parser.add_argument("--into", type=Path, help="a page with a mark for this script (default: print)")
    parser.add_argument("--quick", action="store_true", help="build, compare, and print few calls, also while busy")
    options = parser.parse_args()
    if options.quick:
        options.processes, options.rounds, options.seconds = 1, 2, 0.1
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
            self.folder,
            self.subject,
            options.again,
            isa=instructions.target(),
            environments=options.environments,
            threads=options.threads,
            choose=not options.quick,
        )
        self.groups = {precision: Group(options) for precision in PRECISIONS}
        self.timings: dict[str, dict[str, Timings]] = {}

    def build(self) -> None:
        """Build our packages, and export the model; what cannot be built says why."""
        samples = self.folder / "project" / "recipes" / "samples"
        sentences, self.calibration = texts.held_out(self.folder, self.options.sentences, samples)
        self.inputs = TextInputs(self.subject, sentences)
        more = {"fixed": self.options.shapes, "samples": samples / "sentences.jsonl", "calibration": None}
        for precision, group in self.groups.items():
            for runtime in RUNTIMES:
                # Triton's OpenVINO backend has no option for fp32, so on these CPUs its packages compute in bf16.
                in_bf16 = (precision, runtime) == ("fp32", "openvino") and "avx512_bf16" in instructions.here()
                built = self.building.ours(runtime, precision="bf16" if in_bf16 else precision, **more)
                group.add(replace(built, name=f"{built.name}, bf16") if in_bf16 else built)
        for recipe in self.options.ours:
            for precision, contender in self.building.of_recipe(recipe.resolve()):
                self.groups["int8" if precision == "int8" else "fp32"].add(contender)
        if self.building.exported is None:
            sys.exit(f"recipe build exported no model: {self.groups['fp32'].contenders[0].absent}")

    def build_peers(self) -> None:
        """Build what others make; what cannot be built says why."""
        made = [self.building.eager(), self.building.eager(compiled=True), self.building.plain()]
        for contender in (*made, self.building.openvino()):
            if self.groups["fp32"].takes_part(contender.name):
                self.groups["fp32"].add(contender)
        unfit = "avx512_vnni" if instructions.target() else "avx2"
        for group, peers in zip(self.groups.values(), (FP32_PEERS, PEERS), strict=True):
            for peer in peers:
                if group.takes_part(peer.name) and peer.name not in LEFT_OUT and unfit not in peer.arguments:
                    group.add(self.building.peer(peer, self.calibration))

    def compare(self) -> None:
        """Compare the answers of all contenders with those of PyTorch in fp32."""
        for group in self.groups.values():
            group.compare(self.building.eager(), self.inputs, self.folder / "answers")

    def time(self) -> float:
        """Time the contenders, each precision apart; return the most cores of others if they were too many, else 0."""
        given, tries = self.options, 1 if self.options.quick else measuring.TRIES
        for precision, group in self.groups.items():
            self.timings[precision] = group.time(self.building, given.shapes, given.threads, tries=tries)
        timings = [each for shapes in self.timings.values() for each in shapes.values()]
        return max((each.others for each in timings if each.busy), default=0.0)

    def standings(self) -> list[Standings]:
        """Return what was measured, for each precision."""
        return [
            Standings(each, group.ours(), group.contenders, group.accuracies, self.timings[each])
            for each, group in self.groups.items()
        ]

    def report(self, standings: list[Standings]) -> Iterator[str]:
        """Yield the tables and the words below them."""
        yield from (each.markdown() for each in standings)
        lines = [line for each in standings for line in each.words()]
        lines += [f"{precision}: {each}" for precision, group in self.groups.items() for each in group.failures]
        yield "\n".join(f"- {line}" for line in (*lines, *_notes(self.groups["int8"])))
        options = self.options
        ours = ", ".join(f"{each.ours} ({each.precision})" for each in standings)
        versions = {each.versions for group in self.groups.values() for each in group.contenders if each.versions}
        yield (
            f"{options.threads} threads; medians of {options.rounds} rounds in turns in each of {options.processes} "
            f"fresh processes a contender. Ours is {ours}; a ratio is the median of paired ratios with its 95 % "
            f"interval. Cosines: {options.sentences} sentences, beside PyTorch. {machine()}; "
            f"{' '.join(sorted(instructions.here()))}. {'; '.join(sorted(versions))}."
        )


def _notes(int8: Group) -> Iterator[str]:
    """Yield why ours is slower where it is."""
    yield "fp32: on CPUs with bf16, OpenVINO takes an option to compute in fp32, which Triton's backend cannot pass."
    known = [int8.accuracies[name] for name in (DEFAULT, OURS.format("openvino")) if name in int8.accuracies]
    worst = " and ".join(f"{each.least:.4f}" for each in known)
    yield f"int8: {DEFAULT} has no scale per row, which ours adds in OpenVINO for accuracy. Worst cosines: {worst}."


if __name__ == "__main__":
    main()
