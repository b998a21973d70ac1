"""Makers of tiny random models: checkpoints of every supported architecture, ONNX files as others make them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

ARCHITECTURES = ("bert", "roberta", "distilbert", "mpnet", "electra", "deberta-v2", "albert", "xlm-roberta")

_LINES = (
    "the a an of to and in is it this that was not very film movie good bad great boring plot actor scene sound",
    "where what who when river city train engine model ships fast slow cold warm he she they we you i on at with",
)
WORDS = tuple(word for line in _LINES for word in line.split())
_MARKS = list(".,!?'-") + [chr(code) for code in range(ord("a"), ord("z") + 1)]
_SPECIAL = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "roberta": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
}
_LIKE_ROBERTA = ("roberta", "xlm-roberta", "mpnet")
_HEADS = {
    None: "AutoModel",
    "feature-extraction": "AutoModel",
    "text-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "fill-mask": "AutoModelForMaskedLM",
    "next-sentence": "AutoModelForNextSentencePrediction",
}


def vocabulary(architecture: str = "bert") -> dict[str, int]:
    """Return token -> id: special tokens first, then words, letters and word pieces."""
    special = _SPECIAL["roberta" if architecture in _LIKE_ROBERTA else "bert"]
    pieces = [f"##{mark}" for mark in _MARKS]
    return {token: number for number, token in enumerate(dict.fromkeys([*special, *WORDS, *_MARKS, *pieces]))}


def checkpoint(
    directory: Path,
    architecture: str = "bert",
    *,
    task: str | None = None,
    tokenizer: bool = True,
    seed: int = 0,
    **options: Any,
) -> Path:
    """Save a random two-layer model, as transformers does, and a fast tokenizer that fits it."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = _config(architecture, **options)
    model = getattr(transformers, _HEADS[task]).from_config(config)
    if architecture != "albert":  # its repeated layers make large numbers of large weights
        sharpen(model)
    model.save_pretrained(directory, safe_serialization=True)
    if tokenizer:
        save_tokenizer(directory, architecture)
    return directory


def save_tokenizer(directory: Path, architecture: str = "bert", *, limit: int = 64) -> None:
    """Save a real fast tokenizer: word pieces, framed by the architecture's special tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = vocabulary(architecture)
    roberta = architecture in _LIKE_ROBERTA
    begin, end, unknown = ("<s>", "</s>", "<unk>") if roberta else ("[CLS]", "[SEP]", "[UNK]")
    pad = "<pad>" if roberta else "[PAD]"
    tokenizer = Tokenizer(models.WordPiece(words, unk_token=unknown))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    middle = f"{end} {end}" if roberta else end
    second = "" if roberta else ":1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {middle} $B{second} {end}{second}",
        special_tokens=[(begin, words[begin]), (end, words[end])],
    )
    tokenizer.add_special_tokens([token for token in words if token.startswith(("[", "<"))])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"model_max_length": limit, "pad_token": pad, "tokenizer_class": "PreTrainedTokenizerFast"}
    if not roberta:
        settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def _config(architecture: str, **options: Any) -> Any:
    import transformers

    words = vocabulary(architecture)
    roberta = architecture in _LIKE_ROBERTA
    shared: dict[str, Any] = {
        "vocab_size": len(words),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 66 if roberta else 64,
        "pad_token_id": words["<pad>" if roberta else "[PAD]"],
    }
    if roberta:
        shared |= {"bos_token_id": words["<s>"], "eos_token_id": words["</s>"]}
    if architecture in {"roberta", "xlm-roberta"}:
        shared |= {"type_vocab_size": 1}
    if architecture == "distilbert":
        shared |= {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
            del shared[name]
    if architecture in {"electra", "albert"}:
        shared |= {"embedding_size": 16}
    if architecture == "deberta-v2":
        # As the published v3 checkpoints have it: relative positions in both directions, in logarithmic buckets.
        shared |= {
            "relative_attention": True,
            "position_buckets": 8,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        }
    return transformers.AutoConfig.for_model(architecture, **{**shared, **options})


def sharpen(model: Any) -> None:
    """Spread the weights, so that attention is no plain average and a wrong mask shows in the outputs."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "embedding" not in name:
                weight.mul_(5)


def classifier_with_tokenizer(folder: Path) -> Path:
    """Write a text classifier as an ONNX file, and its tokenizer; return the folder."""
    onnx_text(folder / "model.onnx")
    save_tokenizer(folder)
    return folder


def onnx_text(path: Path, *, words: int | None = None, sequence: int | str = "sequence", mask: bool = True) -> Path:
    """A text classifier as ONNX: embedding, attention over visible tokens with one query, three classes."""
    graph = _Graph(path)
    words = words or len(vocabulary())
    graph.add_input("input_ids", "int64", ["batch", sequence])
    graph.weight("table", words, 8)
    graph.weight("query", 8, 1)
    graph.weight("classes", 8, 3)
    graph.node("Gather", ["table", "input_ids"], "embedded")
    graph.node("MatMul", ["embedded", "query"], "scores")
    if mask:
        graph.add_input("attention_mask", "int64", ["batch", sequence])
        graph.constant("one", 1.0)
        graph.constant("far", -1e4)
        graph.constant("last", [2])
        graph.node("Cast", ["attention_mask"], "visible", to=1)
        graph.node("Unsqueeze", ["visible", "last"], "column")
        graph.node("Sub", ["one", "column"], "hidden")
        graph.node("Mul", ["hidden", "far"], "bias")
        graph.node("Add", ["scores", "bias"], "masked")
    graph.node("Softmax", ["masked" if mask else "scores"], "shares", axis=1)
    graph.node("Mul", ["embedded", "shares"], "weighed")
    graph.constant("tokens", [1])
    graph.node("ReduceSum", ["weighed", "tokens"], "pooled", keepdims=0)
    graph.node("MatMul", ["pooled", "classes"], "logits")
    return graph.save("logits", ["batch", 3])


def onnx_vision(path: Path, *, batch: int | str = "batch") -> Path:
    """An image classifier: convolution, pooling, four classes."""
    graph = _Graph(path)
    graph.add_input("image", "float32", [batch, 3, 32, 32])
    graph.weight("kernel", 6, 3, 3, 3)
    graph.weight("classes", 6, 4)
    graph.node("Conv", ["image", "kernel"], "edges", strides=[2, 2])
    graph.node("Relu", ["edges"], "lit")
    graph.node("GlobalAveragePool", ["lit"], "pooled")
    graph.node("Flatten", ["pooled"], "flat")
    graph.node("MatMul", ["flat", "classes"], "logits")
    return graph.save("logits", [batch, 4])


def onnx_audio(path: Path) -> Path:
    """A waveform model: strided convolutions over time, one vector a frame."""
    graph = _Graph(path)
    graph.add_input("waveform", "float32", ["batch", "samples"])
    graph.weight("first", 5, 1, 8)
    graph.weight("second", 4, 5, 3)
    graph.constant("channel", [1])
    graph.node("Unsqueeze", ["waveform", "channel"], "mono")
    graph.node("Conv", ["mono", "first"], "frames", strides=[4])
    graph.node("Relu", ["frames"], "loud")
    graph.node("Conv", ["loud", "second"], "features", strides=[2], pads=[1, 1])
    return graph.save("features", ["batch", 4, "frames"])


def onnx_recurrent(path: Path, *, kind: str = "LSTM") -> Path:
    """An LSTM or GRU whose first axis is time, not the batch."""
    graph = _Graph(path)
    gates = {"LSTM": 4, "GRU": 3}[kind]
    graph.add_input("frames", "float32", ["time", "batch", 5])
    graph.weight("w", 1, gates * 6, 5)
    graph.weight("r", 1, gates * 6, 6)
    graph.node(kind, ["frames", "w", "r"], "states", hidden_size=6)
    return graph.save("states", ["time", 1, "batch", 6])


def onnx_many_inputs(path: Path) -> Path:
    """A ranking model: an id that is looked up in a table of ten, a flag and four numbers, one score."""
    graph = _Graph(path)
    graph.add_input("user", "int64", ["batch"])
    graph.add_input("is_new", "bool", ["batch", 1])
    graph.add_input("features", "float32", ["batch", 4])
    graph.weight("users", 10, 3)
    graph.weight("mix", 8, 1)
    graph.node("Gather", ["users", "user"], "known")
    graph.node("Cast", ["is_new"], "new", to=1)
    graph.node("Concat", ["known", "new", "features"], "all", axis=1)
    graph.node("MatMul", ["all", "mix"], "score")
    return graph.save("score", ["batch", 1])


class _Graph:
    """An ONNX graph in the making: weights are seeded, so the same maker writes the same bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generator = np.random.default_rng(7)
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def add_input(self, name: str, dtype: str, shape: list[int | str]) -> None:
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, code, shape))

    def weight(self, name: str, *shape: int) -> None:
        values = self.generator.standard_normal(shape).astype("float32")
        self.initializers.append(numpy_helper.from_array(values, name))

    def constant(self, name: str, values: float | list[int]) -> None:
        dtype = np.float32 if isinstance(values, float) else np.int64
        self.initializers.append(numpy_helper.from_array(np.array(values, dtype=dtype), name))

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))

    def save(self, output: str, shape: list[int | str]) -> Path:
        result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "made-elsewhere", self.inputs, [result], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(self.path))
        return self.path
