"""Models as newcomers bring them to `recipe new`: folders of many architectures, and ONNX files of many exporters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import generators
import graphs
import models
import numpy as np
import tiny_architectures
from graphs import FLOAT, INT64, weight
from onnx import TensorProto, helper, numpy_helper, save


def _text(architecture: str, task: str | None = None, **options: Any) -> Callable[[Path], None]:
    return lambda folder: models.checkpoint(folder, architecture, task=task, **options) and None


def _wordless(auto_class: str, architecture: str) -> Callable[[Path], None]:
    return lambda folder: tiny_architectures.checkpoint(folder, auto_class, architecture) and None


def _generator(family: str) -> Callable[[Path], None]:
    return lambda folder: generators.checkpoint(folder, family) and None


def _pooled(folder: Path) -> None:
    """Write a model of sentence-transformers: the first token's vector, normalized."""
    models.checkpoint(folder, "mpnet")
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [
        {
            "idx": at,
            "name": str(at),
            "path": f"{at}_{kind}" if at else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "2_Normalize").mkdir()


def _cross_encoder(folder: Path) -> None:
    """Write a model of sentence-transformers that scores pairs of texts."""
    models.checkpoint(folder, "electra", task="text-classification", num_labels=1)
    config = json.loads((folder / "config.json").read_text())
    config["sentence_transformers"] = {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "5.0.0"}
    (folder / "config.json").write_text(json.dumps(config))


FOLDERS: Mapping[str, Callable[[Path], None]] = {
    "deberta-tokens": _text("deberta-v2", "token-classification"),
    "albert-answers": _text("albert", "question-answering"),
    "xlm-roberta-masks": _text("xlm-roberta", "fill-mask"),
    "distilbert-twenty-classes": _text("distilbert", "text-classification", num_labels=20),
    "modernbert-classes": _text("modernbert", "text-classification"),
    "mpnet-pooled": _pooled,
    "cross-encoder": _cross_encoder,
    "convbert": _wordless("AutoModel", "convbert"),
    "ernie-classes": _wordless("AutoModelForSequenceClassification", "ernie"),
    "gpt2": _generator("gpt2"),
    "llama": _generator("llama"),
    "t5": _generator("t5"),
    "bart": _generator("bart"),
}


def _node(operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> Any:
    return helper.make_node(operator, inputs, list(outputs), **attributes)


def _numbers(name: str, values: Any, dtype: type = np.int64) -> Any:
    return numpy_helper.from_array(np.array(values, dtype), name)


def tabular() -> Any:
    """Return a tree of scikit-learn, as skl2onnx writes it: a label and the probability of each class."""
    tree = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [2, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "nodes_hitrates": [1.0, 1.0, 1.0],
        "nodes_missing_value_tracks_true": [0, 0, 0], "class_treeids": [0, 0, 0, 0], "class_nodeids": [1, 1, 2, 2],
        "class_ids": [0, 1, 0, 1], "class_weights": [0.9, 0.1, 0.2, 0.8], "classlabels_int64s": [0, 1],
        "post_transform": "NONE",
    }  # fmt: skip
    node = _node("TreeEnsembleClassifier", ["X"], "label", "probabilities", domain="ai.onnx.ml", **tree)
    outputs = [("label", INT64, [None]), ("probabilities", FLOAT, [None, 2])]
    return graphs.graph([node], [("X", FLOAT, [None, 4])], outputs, domains=["ai.onnx.ml"], opset=15)


def channels_last() -> Any:
    """Return a model of images as TensorFlow has them, in bytes and with the channels last, in opset 11."""
    nodes = [
        _node("Cast", ["serving_default_input:0"], "numbers", to=FLOAT),
        _node("Transpose", ["numbers"], "chw", perm=[0, 3, 1, 2]),
        _node("Conv", ["chw", "kernel"], "edges", strides=[2, 2]),
        _node("GlobalAveragePool", ["edges"], "pooled"),
        _node("Flatten", ["pooled"], "StatefulPartitionedCall:0"),
    ]
    inputs = [("serving_default_input:0", TensorProto.UINT8, ["unk__12", 24, 24, 3])]
    outputs = [("StatefulPartitionedCall:0", FLOAT, ["unk__13", 5])]
    return graphs.graph(nodes, inputs, outputs, [weight("kernel", 5, 3, 3, 3)], opset=11, ir=6)


def words() -> Any:
    """Return a model that takes texts as tensors, as TensorFlow's models do."""
    node = _node("StringNormalizer", ["text"], "lower", case_change_action="LOWER")
    return graphs.graph([node], [("text", TensorProto.STRING, ["n"])], [("lower", TensorProto.STRING, ["n"])])


def detector() -> Any:
    """Return a detector of any image size, whose boxes and scores have as many rows as the image has places."""
    nodes = [
        _node("Conv", ["images", "kernel"], "places", strides=[4, 4]),
        _node("Reshape", ["places", "columns"], "flat"),
        _node("Transpose", ["flat"], "rows", perm=[0, 2, 1]),
        _node("Split", ["rows", "parts"], "boxes", "raw", axis=2),
        _node("Sigmoid", ["raw"], "scores"),
    ]
    stored = [weight("kernel", 6, 3, 4, 4), _numbers("columns", [0, 6, -1]), _numbers("parts", [4, 2])]
    outputs = [("boxes", FLOAT, ["batch", "anchors", 4]), ("scores", FLOAT, ["batch", "anchors", 2])]
    return graphs.graph(nodes, [("images", FLOAT, ["batch", 3, "height", "width"])], outputs, stored, opset=13)


def towers() -> Any:
    """Return a ranker of a query and a document of different lengths: token ids with names of their own."""
    nodes = []
    for side in ("query", "doc"):
        nodes += [
            _node("Gather", ["table", f"{side}_ids"], f"{side}_rows"),
            _node("ReduceMean", [f"{side}_rows", "tokens"], f"{side}_mean", keepdims=0),
        ]
    nodes += [_node("Mul", ["query_mean", "doc_mean"], "both"), _node("ReduceSum", ["both", "tokens"], "relevance")]
    inputs = [("query_ids", INT64, ["n", "query_len"]), ("doc_ids", INT64, ["n", "doc_len"])]
    stored = [weight("table", 50, 8), _numbers("tokens", [1])]
    return graphs.graph(nodes, inputs, [("relevance", FLOAT, ["n", 1])], stored, opset=18)


def series(scale: tuple[int, ...] = (1,)) -> Any:
    """Return a forecast: seven numbers an hour, an int32 weekday, and one number for all rows."""
    nodes = [
        _node("Gather", ["days", "weekday"], "day"),
        _node("Unsqueeze", ["day", "hours"], "column"),
        _node("Add", ["history", "column"], "both"),
        _node("Mul", ["both", "scale"], "scaled"),
        _node("ReduceMean", ["scaled"], "forecast", axes=[1], keepdims=0),
    ]
    inputs = [
        ("history", FLOAT, ["batch_size", 24, 7]),
        ("weekday", TensorProto.INT32, ["batch_size"]),
        ("scale", FLOAT, scale),
    ]
    stored = [weight("days", 7, 7), _numbers("hours", [1])]
    return graphs.graph(nodes, inputs, [("forecast", FLOAT, ["batch_size", 7])], stored, opset=14)


def spectrogram() -> Any:
    """Return a model of sound: 16 bands over a time of any length, and how many frames count."""
    nodes = [
        _node("Conv", ["audio_signal", "kernel"], "frames", pads=[1, 1]),
        _node("ReduceMean", ["frames"], "means", axes=[2], keepdims=0),
        _node("Cast", ["length"], "counted", to=FLOAT),
        _node("Unsqueeze", ["counted", "last"], "column"),
        _node("Mul", ["means", "column"], "weighed"),
        _node("Softmax", ["weighed"], "logprobs", axis=-1),
    ]
    inputs = [("audio_signal", FLOAT, ["B", 16, "T"]), ("length", INT64, ["B"])]
    stored = [weight("kernel", 4, 16, 3), _numbers("last", [1])]
    return graphs.graph(nodes, inputs, [("logprobs", FLOAT, ["B", 4])], stored, opset=16)


def halves() -> Any:
    """Return a model of half precision, inputs and outputs included, in opset 19."""
    values = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float16)
    nodes = [_node("MatMul", ["features", "w"], "sums"), _node("Tanh", ["sums"], "embedding")]
    inputs = [("features", TensorProto.FLOAT16, ["batch", 6])]
    outputs = [("embedding", TensorProto.FLOAT16, ["batch", 3])]
    return graphs.graph(nodes, inputs, outputs, [numpy_helper.from_array(values, "w")], opset=19, ir=9)


def doubles() -> Any:
    """Return a linear model in double precision."""
    values = np.random.default_rng(0).standard_normal((4, 2))
    nodes = [_node("MatMul", ["x", "w"], "variable")]
    outputs = [("variable", TensorProto.DOUBLE, ["N", 2])]
    return graphs.graph(
        nodes, [("x", TensorProto.DOUBLE, ["N", 4])], outputs, [numpy_helper.from_array(values, "w")], opset=12
    )


def clip_of_frames() -> Any:
    """Return a model of videos: five axes, of which batch and frames are open."""
    nodes = [
        _node("ReduceMean", ["pixel_values"], "means", axes=[1, 3, 4], keepdims=0),
        _node("MatMul", ["means", "w"], "logits"),
    ]
    inputs = [("pixel_values", FLOAT, ["batch_size", "num_frames", 3, 8, 8])]
    return graphs.graph(nodes, inputs, [("logits", FLOAT, ["batch_size", 4])], [weight("w", 3, 4)], opset=17)


def weights_as_inputs() -> Any:
    """Return a model of IR 3, which lists its weights among its inputs."""
    nodes = [_node("MatMul", ["data", "fc_w"], "sums"), _node("Add", ["sums", "fc_b"], "prob")]
    stored = [weight("fc_w", 8, 3), weight("fc_b", 3)]
    inputs = [("data", FLOAT, [1, 8]), ("fc_w", FLOAT, [8, 3]), ("fc_b", FLOAT, [3])]
    return graphs.graph(nodes, inputs, [("prob", FLOAT, [1, 3])], stored, opset=11, ir=3)


def _exported(module: Any, inputs: tuple[Any, ...], path: Path, **options: Any) -> None:
    import torch

    torch.onnx.export(module.eval(), inputs, str(path), dynamo=False, **options)


def recurrent_export(path: Path) -> None:
    """Export a classifier with an LSTM from PyTorch: token ids `x`, in opset 14."""
    import torch

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.cell = torch.nn.Embedding(30, 8), torch.nn.LSTM(8, 6, batch_first=True)
            self.classes = torch.nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.classes(self.cell(self.table(x))[0][:, -1])

    torch.manual_seed(0)
    axes = {"x": {0: "batch", 1: "seq_len"}, "out": {0: "batch"}}
    ids = torch.zeros((2, 5), dtype=torch.int64)
    _exported(Classifier(), (ids,), path, input_names=["x"], output_names=["out"], dynamic_axes=axes, opset_version=14)


def bert_export(path: Path) -> None:
    """Export a BERT from PyTorch with names of its own and fixed lengths, in opset 17."""
    import torch
    import transformers

    folder = models.checkpoint(path.with_suffix(""), "bert", task="text-classification", tokenizer=False)
    bert = transformers.AutoModelForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    bert.config.return_dict = False
    ids = torch.ones((1, 16), dtype=torch.int64)
    names, axes = ["ids", "mask"], {name: {0: "dynamic_axes_1"} for name in ("ids", "mask", "scores")}
    _exported(bert, (ids, ids), path, input_names=names, output_names=["scores"], dynamic_axes=axes, opset_version=17)


def external(path: Path) -> None:
    """Write a model of opset 21 whose weights lie in a file of their own."""
    nodes = [_node("MatMul", ["hidden", "w"], "sums"), _node("Gelu", ["sums"], "output")]
    outputs = [("output", FLOAT, ["batch", "sequence", 64])]
    model = graphs.graph(
        nodes, [("hidden", FLOAT, ["batch", "sequence", 32])], outputs, [weight("w", 32, 64)], opset=21, ir=10
    )
    save(model, str(path), save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)


def _file(model: Callable[[], Any]) -> Callable[[Path], None]:
    return lambda path: save(model(), str(path))


FILES: Mapping[str, Callable[[Path], None]] = {
    "tabular": _file(tabular),
    "channels-last": _file(channels_last),
    "detector": _file(detector),
    "towers": _file(towers),
    "series": _file(series),
    "single-number": _file(lambda: series(())),
    "spectrogram": _file(spectrogram),
    "halves": _file(halves),
    "doubles": _file(doubles),
    "clip-of-frames": _file(clip_of_frames),
    "weights-as-inputs": _file(weights_as_inputs),
    "recurrent-export": recurrent_export,
    "bert-export": bert_export,
    "external": external,
}
NAMES = (*FOLDERS, *FILES)
OUTSIDE: Mapping[str, Callable[[Path], None]] = {
    "clip": _wordless("AutoModel", "clip"),
    "whisper": _wordless("AutoModelForSpeechSeq2Seq", "whisper"),
    "wav2vec2": _wordless("AutoModelForCTC", "wav2vec2"),
    "words": _file(words),
}
"""Models that no recipe can build: of other kinds than texts, and with texts as tensors."""


def write(name: str, folder: Path) -> str:
    """Write a model into a folder, and return the argument of `recipe new` that names it."""
    write_model = FOLDERS.get(name) or FILES.get(name) or OUTSIDE[name]
    is_file = name in FILES or name == "words"
    write_model(folder / (place := f"{name}.onnx" if is_file else name))
    return place
