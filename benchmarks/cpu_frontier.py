"""The latency and the accuracy of int8 models on a CPU: ours, and those of other tools, measured in turns."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import recipe_program as program
from timing import machine, table

sys.path.append(str(program.ROOT))

from frontier import contest as contests
from frontier import instructions, measuring, pictures, texts, verdicts
from frontier.building import EAGER, FP32_PEERS, OURS, PEERS, PLAIN, Building
from frontier.contest import Group
from frontier.load import ALLOWED
from frontier.measuring import Timings
from frontier.subjects import SUBJECTS, Subject, TextInputs

RUNTIMES = ("auto", "onnxruntime", "openvino")
PACKAGES = ("onnxruntime", "openvino", "nncf", "torch", "transformers")
PICTURES, SAMPLES = 200, 32
"""Pictures for the accuracy at most, and those for validation and for calibration."""


def main() -> None:
    """Build the contenders, compare and time them, print the tables and the verdict. Exits with 1 if it was busy."""
    options = _options()
    with contextlib.ExitStack() as stack:
        scratch = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = scratch.resolve() / options.model
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(sys.stderr):
            contest = Contest(SUBJECTS[options.model], folder, options)
            contest.build()
            if not options.no_accuracy:
                contest.compare_all()
            if not options.no_latency:
                contest.time_all()
        if options.json:
            options.json.write_text(json.dumps(contest.as_json(), indent=1) + "\n")
        if contest.busy and not options.allow_busy:
            print(contest.busy)
            sys.exit(1)
        print("\n\n".join(contest.report()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(SUBJECTS), default="minilm")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep what was built, to measure it again later")
    contests.add_options(parser, processes=3, sentences=1000)
    parser.add_argument("--runtimes", nargs="+", default=list(RUNTIMES), help="runtimes of our packages")
    parser.add_argument("--profiles", choices=["ranges", "fixed"], default="fixed", help="of our packages (fixed)")
    isa = "`target.isa` of our recipes (avx2 on a CPU without VNNI, else none)"
    parser.add_argument("--isa", choices=instructions.TARGETS, default=instructions.target(), help=isa)
    parser.add_argument("--no-calibrate", action="store_true", help="calibrate our recipes for images on random inputs")
    parser.add_argument("--shapes", nargs="+", metavar="SHAPE", help="such as 8x128: batch and tokens")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: with one thread, while busy")
    parser.add_argument("--no-accuracy", action="store_true")
    parser.add_argument("--no-latency", action="store_true")
    parser.add_argument("--allow-busy", action="store_true", help="print what was measured on a busy machine, marked")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number that was measured")
    quiet = "take the times of quiet measurements from what `--json` wrote, and measure the busy ones again"
    parser.add_argument("--quiet-of", type=Path, metavar="FILE", help=quiet)
    return parser.parse_args()


class Contest(Group):
    """One subject with all its contenders, and what was measured of them."""

    def __init__(self, subject: Subject, folder: Path, options: argparse.Namespace) -> None:
        super().__init__(options, always=PLAIN)
        self.folder = folder
        self.shapes: Sequence[str] = options.shapes or subject.shapes
        self.timings: dict[int, dict[str, Timings]] = {}
        self.building = Building(folder, subject, options.again, isa=options.isa, environments=options.environments)
        self.subject = self.building.subject

    def build(self) -> None:
        """Build all contenders; those that cannot be built say why."""
        options = self.options
        fixed = self.subject.shapes if options.profiles == "fixed" else ()
        samples, ours, calibration = self._pictures() if self.subject.images else self._texts()
        for runtime in options.runtimes:
            if self.takes_part(OURS.format(runtime)) or self.building.exported is None:
                built = self.building.ours(runtime, fixed=fixed, samples=samples, calibration=ours)
                if self.takes_part(built.name):
                    self.add(built)
        if self.building.exported is None:
            sys.exit(f"recipe build exported no model: {self.contenders[-1].absent if self.contenders else ''}")
        self.add(self.building.plain())
        if self.subject.auto and self.takes_part(EAGER):
            self.add(self.building.eager())
        if self.subject.auto and self.takes_part("TorchScript"):
            self.add(self.building.peer(FP32_PEERS[0]))
        for peer in PEERS:
            kinds = {self.subject.name, "tensors" if self.subject.images else "text"}
            if self.takes_part(peer.name) and (not peer.limits or peer.limits & kinds):
                self.add(self.building.peer(peer, calibration))

    def compare_all(self) -> None:
        """Compare the answers of all contenders with those of PyTorch in fp32."""
        original = self.building.eager() if self.subject.auto else self.building.plain()
        self.compare(original, self.inputs, self.folder / "answers", self.subject.part)

    def time_all(self) -> None:
        """Time all contenders at all shapes, for each number of threads."""
        options = self.options
        for threads in options.threads:
            quiet = self._quiet(threads)
            shapes = [shape for shape in self.shapes if shape not in quiet]
            tries = 1 if options.allow_busy else measuring.TRIES
            measured = self.time(self.building, shapes, threads, clock=options.clock, tries=tries)
            self.timings[threads] = {shape: (quiet | measured)[shape] for shape in self.shapes}

    def _quiet(self, threads: int) -> dict[str, Timings]:
        """Return the times of an earlier run for the shapes at which the machine was quiet then.

        Ends the program where the earlier run measured other contenders, or in another way.
        """
        if self.options.quiet_of is None:
            return {}
        earlier = json.loads(self.options.quiet_of.read_text())
        now = json.loads(json.dumps(self.as_json()))
        if any(earlier[name] != now[name] for name in ("machine", "contenders")):
            sys.exit(f"{self.options.quiet_of} is of other contenders, or was measured in another way")
        times = {
            shape: Timings(tuple(each["processes"]), each["others"])
            for shape, each in earlier["milliseconds"].get(str(threads), {}).items()
        }
        return {shape: each for shape, each in times.items() if shape in self.shapes and not each.busy}

    @property
    def busy(self) -> str:
        """The load by other processes in words, if it was more than a small share; else empty."""
        shares = [timings.others for shapes in self.timings.values() for timings in shapes.values()]
        high = [share for share in shares if share > ALLOWED]
        if not high:
            return ""
        what = f"other processes used up to {max(high):.2f} cores during {len(high)} of {len(shares)} measurements"
        return f"**busy**: {what} (at most {ALLOWED} are allowed); these times are no result"

    def report(self) -> Iterator[str]:
        """Yield the tables and the words below them."""
        if self.busy:
            yield self.busy
        if self.accuracies:
            yield self._accuracy_table()
        for threads, shapes in self.timings.items():
            yield self._latency_table(threads, shapes)
        absent = [f"- {each.name}: {each.absent}" for each in self.contenders if each.absent]
        absent += [f"- {each}" for each in self.failures]
        if absent:
            yield "\n".join(absent)
        results = verdicts.Results(self.contenders, self.accuracies, self.timings)
        tuned = self.subject.name == "minilm"
        judged = verdicts.of_tuned_subject(results) if tuned else verdicts.of_other_subject(results)
        yield table(["bound", "", "measured", ""], (each.row() for each in judged))
        yield self._words()

    def as_json(self) -> dict[str, object]:
        """Return every number that was measured, as JSON values."""
        return {
            "machine": self._words(),
            "contenders": [asdict(each) for each in self.contenders],
            "accuracy": {name: asdict(each) for name, each in self.accuracies.items()},
            "milliseconds": {
                threads: {shape: {"others": each.others, "processes": each.processes} for shape, each in shapes.items()}
                for threads, shapes in self.timings.items()
            },
            "failures": self.failures,
        }

    def _accuracy_table(self) -> str:
        original = EAGER if self.subject.auto else PLAIN
        weak = ", random weights: weak evidence" if self.subject.random else ""
        header = [f"against {original}{weak}", "cosine mean", "worst", "in batches of 8: mean", "worst"]
        header += ["alone against in a batch, worst", "same neighbour", ""]
        rows = []
        for name, each in self.accuracies.items():
            numbers = (each.mean, each.worst, each.mean_in_batch, each.worst_in_batch, each.alone_in_batch)
            valid = "" if each.valid else "not valid"
            rows.append([name, *(f"{number:.4f}" for number in numbers), f"{each.neighbours:.3f}", valid])
        return table(header, rows)

    def _latency_table(self, threads: int, shapes: dict[str, Timings]) -> str:
        header = [f"{threads} thread{'s' * (threads > 1)}: times faster than {PLAIN}", *shapes]
        ours = OURS.format(self.options.runtimes[0])
        header += [f"{shape}, time of {ours}" for shape in shapes]

        def cells(name: str, base: str, *, inverse: bool) -> list[str]:
            pairs = [each.has(name) and each.has(base) and each.ratio(name, base) for each in shapes.values()]
            return [str(each.inverse() if inverse else each) if each else "" for each in pairs]

        names = [each.name for each in self.ready()]
        rows = [[name, *cells(name, PLAIN, inverse=True), *cells(name, ours, inverse=False)] for name in names]
        return table(header, rows)

    def _words(self) -> str:
        options = self.options
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
        peers = "; ".join(f"{each.name}: {each.versions}" for each in self.contenders if each.versions)
        how = f"{options.rounds} rounds in turns in each of {options.processes} fresh processes, {options.clock} time"
        target = f"; target.isa: {options.isa}" if options.isa else ""
        isa = " ".join(sorted(instructions.here()))
        bounds = "medians of paired ratios with 95 % intervals"
        weights = ", random weights (weak evidence of accuracy)" if self.subject.random else ""
        text = f"{options.sentences} sentences of the documentation of installed packages, seed {texts.SEED}"
        share = "all" if self.subject.written else "half"
        picture = f"{min(options.sentences, PICTURES)} crops of photographs, {share} with text, seed {pictures.SEED}"
        return (
            f"{self.subject.name}{weights}; {picture if self.subject.images else text}; "
            f"{how}, {bounds}; profiles: {options.profiles}{target}. {machine()}; "
            f"{isa}; {versions}. {peers}."
        )

    def _texts(self) -> tuple[Path, Path | None, Path]:
        """Draw the sentences; return the files for validation, for our calibration (built in) and for the peers'."""
        shared = self.folder / "project" / "recipes" / "samples"
        sentences, calibration = texts.held_out(self.folder, self.options.sentences, shared)
        self.inputs = TextInputs(self.subject, sentences)
        return shared / "sentences.jsonl", None, calibration

    def _pictures(self) -> tuple[Path, Path | None, Path]:
        """Draw the pictures; return the files for validation, for our calibration and for the peers': the same one."""
        name, folder = self.subject.images, self.folder / "project" / "recipes" / "samples"
        side = int(self.subject.shapes[0].rpartition("x")[2])
        lines = [line for line in texts.BUILT_IN.read_text("utf-8").splitlines() if line]
        count = min(self.options.sentences, PICTURES)
        drawn = pictures.crops(count + 2 * SAMPLES, side, lines, low=self.subject.low, written=self.subject.written)
        files = (folder / "pictures.npz", folder / "calibration.npz")
        for file, part in zip(files, (drawn[:SAMPLES], drawn[SAMPLES : 2 * SAMPLES]), strict=True):
            np.savez(file, **{name: part})
        self.inputs = pictures.ImageInputs(name, drawn[2 * SAMPLES :])
        return files[0], None if self.options.no_calibrate else files[1], files[1]


if __name__ == "__main__":
    main()
