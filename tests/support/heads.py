"""Tiny models that differ in their last operator, activation, labels or modules, and their answers in one process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import models
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from engine import api
from engine.kit.triton import repository
from engine.kit.triton.served.fused import Work
from engine.kit.triton.serving import Serving
from engine.step import Source
from engine.steps.export import Export
from engine.steps.fetch import Fetch

TEXTS = ("the film was good", "bad plot, boring actor and a very slow train", "a")
PAIRS = tuple((text, "where is the great city?") for text in TEXTS)
OPSET = 17


def checked(source: Path, **model: Any) -> None:
    """Check a recipe of the model in `source`. Raises UserError."""
    recipe = source.parent / f"{source.stem}.yaml"
    fields = json.dumps({"source": source.name, **model})
    profiles = "[{batch: [1, 2, 4], sequence: [1, 16, 64]}]"
    recipe.write_text(f"name: heads\nmodel: {fields}\nprofiles: {profiles}\n")
    api.check([str(recipe)])


def served(source: Path, scratch: Path, built: Path | None = None, **model: Any) -> Work:
    """Return what answers in a package of a model, after `fetch`; `built` is the graph of a checkpoint."""
    named = model.pop("tokenizer", None)
    task, fetched = model.pop("task", None), scratch / "fetched"
    tokenizer = None if named is None else Source(uri="file:tokenizer", part="tokenizer")
    step = Fetch(source=Source(uri=f"file:{source.name}"), tokenizer=tokenizer, **model)
    step.run(fetched, source=source, tokenizer=named)
    serving = Serving(model_name="m", ensemble="m_text", layout="fused", task=task, largest={"batch": 4})
    repository.write(scratch / "package", serving, validated=built or fetched, checkpoint=fetched)
    folder = scratch / "package" / "m_text" / "1"
    return Work(folder, json.loads((folder / "settings.json").read_text()))


def answers(work: Work, rows: Any) -> dict[str, np.ndarray]:
    """Return the tensors that a client gets for rows of one text or two."""
    texts = np.array([[text.encode() for text in ([row] if isinstance(row, str) else row)] for row in rows], object)
    names = list(work.steps[-1]["gives"].values())
    [(_, answer, _)] = work.together([(lambda: {"TEXT": texts}, names, lambda: False)])
    return answer()


def scores(answer: dict[str, np.ndarray], row: int) -> dict[str, float]:
    """Return label -> score of one row of a classifier's answer."""
    pairs = zip(answer["labels"][row], answer["scores"][row], strict=True)
    return {label.decode(): float(score) for label, score in pairs}


def exported(folder: Path, task: str, **options: Any) -> tuple[Path, Path]:
    """Return a checkpoint and its graph."""
    checkpoint = models.checkpoint(folder / "checkpoint", task=task, **options)
    Export(task=task).run(folder / "built", checkpoint=checkpoint)
    return checkpoint, folder / "built"


def copied(checkpoint: Path, folder: Path) -> Path:
    """Return a copy of a checkpoint that a test may change."""
    return Path(shutil.copytree(checkpoint, folder / "model"))


def edit(path: Path, **fields: Any) -> None:
    """Change fields of a JSON file, which may be new; a field of None is removed."""
    old = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({name: each for name, each in {**old, **fields}.items() if each is not None}))


def modules(checkpoint: Path, *kinds: Any, pooling: str = "mean", **options: Any) -> None:
    """Save modules of sentence-transformers behind the Transformer: names of kinds, or modules themselves."""
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, kind in enumerate(("Pooling", *kinds), 1):
        name = kind if isinstance(kind, str) else type(kind).__name__
        path = f"{number}_{name}"
        listed.append(
            {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        )
        (checkpoint / path).mkdir()
        if not isinstance(kind, str):
            kind.save(str(checkpoint / path))
    pooled = {"word_embedding_dimension": 32, "pooling_mode": pooling, **options}
    (checkpoint / "1_Pooling" / "config.json").write_text(json.dumps(pooled))
    (checkpoint / "modules.json").write_text(json.dumps(listed))


def onnx_file(
    path: Path, *tail: Any, classes: int = 3, tokens: bool = False, names: Any = None, **options: Any
) -> Path:
    """Write a text classifier as ONNX whose logits `raw` go through the nodes `tail` into `logits`.

    With `tokens` there are logits for each token. `names` are other names of the inputs. Options: `shape` and `type` of
    the output, `types` for an input of token types, `vocabulary`, `functions` and their `domains`.
    """
    rng = np.random.default_rng(3)
    weights = {
        "table": rng.standard_normal((options.get("vocabulary", len(models.vocabulary())), 8)),
        "kinds": rng.standard_normal((2, 8)),
        "classes": rng.standard_normal((8, classes)) * 2,
    }
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"])]
    inputs = ["input_ids", "attention_mask"]
    if options.get("types"):
        inputs.append("token_type_ids")
        nodes += [
            helper.make_node("Gather", ["kinds", "token_type_ids"], ["second"]),
            helper.make_node("Add", ["words", "second"], ["embedded"]),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["words"], ["embedded"]))
    nodes += [
        helper.make_node("Cast", ["attention_mask"], ["visible"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["visible", "last"], ["column"]),
        helper.make_node("Mul", ["embedded", "column"], ["seen"]),
    ]
    if tokens:
        nodes.append(helper.make_node("Identity", ["seen"], ["pooled"]))
    else:
        nodes += [
            helper.make_node("ReduceSum", ["seen", "middle"], ["sum"], keepdims=0),
            helper.make_node("ReduceSum", ["column", "middle"], ["count"], keepdims=0),
            helper.make_node("Div", ["sum", "count"], ["pooled"]),
        ]
    nodes.append(helper.make_node("MatMul", ["pooled", "classes"], ["raw"]))
    nodes += tail or [helper.make_node("Identity", ["raw"], ["logits"])]
    constants = {"last": np.array([-1]), "middle": np.array([1]), "one": np.array(1, np.float32)}
    stored = [numpy_helper.from_array(each.astype(np.float32), name) for name, each in weights.items()]
    stored += [numpy_helper.from_array(each, name) for name, each in constants.items()]
    shape = options.get("shape") or (["batch", "sequence", classes] if tokens else ["batch", classes])
    output = helper.make_tensor_value_info("logits", options.get("type", TensorProto.FLOAT), shape)
    renamed = dict(zip(inputs, names or inputs, strict=True))
    for node in nodes:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    kind = TensorProto.INT64
    given = [helper.make_tensor_value_info(renamed[name], kind, ["batch", "sequence"]) for name in inputs]
    opsets = [
        helper.make_opsetid("", OPSET),
        *(helper.make_opsetid(domain, 1) for domain in options.get("domains", ())),
    ]
    graph = helper.make_graph(nodes, "classifier", given, [output], stored)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=options.get("functions", ()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    models.save_tokenizer(path.parent / "tokenizer")
    return path
