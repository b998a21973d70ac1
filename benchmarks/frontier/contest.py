"""Contest: the contenders of a group, how they are compared and timed, and the options of the scripts that do it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import onnx

from engine.kit.inputs import bench_inputs
from frontier import environments, measuring
from frontier.accuracy import Accuracy
from frontier.building import Building
from frontier.contenders import Contender
from frontier.measuring import Inputs, Timings
from frontier.seats import SeatError


def add_options(parser: argparse.ArgumentParser, *, processes: int, sentences: int) -> None:
    """Add the options of every contest, with the script's defaults."""
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="contenders whose names contain NAME")
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="peers to build again, by their names")
    parser.add_argument("--processes", type=int, default=processes, help=f"fresh processes of each ({processes})")
    parser.add_argument("--rounds", type=int, default=10, help="in each process (10)")
    parser.add_argument("--seconds", type=float, default=2.0, help="a contender at a shape in a process (2)")
    parser.add_argument("--sentences", type=int, default=sentences, help=f"for the accuracy ({sentences})")
    parser.add_argument("--environments", type=Path, default=environments.FOLDER, help="of other tools, kept")


class Group:
    """Contenders that are compared with each other, and what was measured of them; `always` is never left out."""

    def __init__(self, options: argparse.Namespace, *, always: str = "") -> None:
        self.options, self._always = options, always
        self.contenders: list[Contender] = []
        self.accuracies: dict[str, Accuracy] = {}
        self.failures: list[str] = []

    def takes_part(self, name: str) -> bool:
        """Tell whether the options ask for a contender."""
        only = self.options.only
        return not only or name == self._always or any(each.lower() in name.lower() for each in only)

    def add(self, contender: Contender) -> None:
        """Add a contender, and say where its model is."""
        print(f"{contender.name}: {contender.absent or contender.path}")
        self.contenders.append(contender)

    def ready(self) -> list[Contender]:
        """Return the contenders that have a model."""
        return [each for each in self.contenders if not each.absent]

    def ours(self) -> str:
        """Return the name of the last of our packages, with which the others are compared."""
        return [each.name for each in self.ready() if each.kind == "ours"][-1]

    def compare(self, original: Contender, inputs: Inputs, folder: Path, part: Sequence[int] | None = None) -> None:
        """Compare the answers of all contenders with the original's; `folder` keeps the answers."""
        for each in self.ready():
            started = time.perf_counter()
            try:
                self.accuracies[each.name] = measuring.compared(each, original, inputs, folder, part)
                print(f"{each.name}: compared in {time.perf_counter() - started:.1f} s")
            except SeatError as error:
                self.failures.append(f"the accuracy of {each.name}: {error}")

    def time(
        self, building: Building, shapes: Sequence[str], threads: int, *, clock: str = "wall", tries: int
    ) -> dict[str, Timings]:
        """Time all contenders in turns; return the timings by shape."""
        graph, options = onnx.load(building.exported, load_external_data=False), self.options
        timings, failures = measuring.timed(
            self.ready(),
            {shape: bench_inputs.draw(graph, building.subject.sizes(shape)) for shape in shapes},
            building.folder,
            threads=threads,
            processes=options.processes,
            rounds=options.rounds,
            seconds=options.seconds,
            clock=clock,
            tries=tries,
        )
        self.failures += failures
        return timings
