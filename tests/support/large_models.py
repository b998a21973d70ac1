"""Makers of transformers whose numbers are as large as those of trained ones: BERT, RoBERTa, T5 encoders, as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import models

from engine.kit.inputs import cases, samples
from engine.kit.inputs.cases import Case
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.steps.export import Export
from engine.steps.shape_infer import ShapeInfer

SENTENCES = (
    "the film is a charming and often affecting journey .",
    "where is the river in the city ?",
    "a boring plot with a bad actor , and a sound that was not good",
    "ships",
    "we train a model , and it is fast when warm and slow when cold : an engine that you start on a cold day is slow",
    "he said she was in the city when the train was not",
    "is it good ?",
    "great , great film !",
)


def bert(directory: Path, architecture: str = "bert") -> Path:
    """A random BERT or RoBERTa of four layers with the axes of real ones, exported and with shapes."""
    checkpoint = models.checkpoint(
        directory / "checkpoint",
        architecture,
        task="feature-extraction",
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
    )
    Export().run(directory / "exported", checkpoint=checkpoint)
    return shaped(directory)


def t5_encoder(directory: Path, *, scale: float, wide: float = 1.0) -> Path:
    """A random T5 encoder of four layers.

    `scale` multiplies what the feed-forward layers add to the residual stream, `wide` what they compute within.
    Trained ones add so much that the stream leaves the range of fp16: transformers keeps their `wo` in fp32.
    """
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(models.vocabulary()), d_model=128, d_kv=32, d_ff=512, num_layers=4, num_heads=4,
        feed_forward_proj="gated-gelu", dropout_rate=0.0,
    )  # fmt: skip
    encoder = transformers.T5EncoderModel(config).eval()
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            if name.endswith("wo.weight"):
                weight.mul_(scale)
            if "wi_1" in name:
                weight.mul_(wide)
    models.save_tokenizer(directory / "checkpoint")
    config.save_pretrained(directory / "checkpoint")
    (directory / "exported").mkdir(parents=True)
    _export(encoder, directory / "exported" / onnx_files.MODEL)
    return shaped(directory)


def shaped(directory: Path) -> Path:
    """What shape inference makes of `directory/exported`."""
    ShapeInfer().run(directory / "shaped", exported=directory / "exported")
    return directory / "shaped"


def reference(directory: Path) -> Path:
    """What the graph itself answers to sentences and to batches of them with masks of every kind."""
    from engine.kit.quantization import calibration

    graph = onnx_files.load_graph(directory / "shaped")
    lines = [samples.SampleText(f"line {number}", text) for number, text in enumerate(SENTENCES, 1)]
    tokenized = samples.tokenize(lines, directory / "checkpoint", onnx_files.inputs(graph))
    tokenized = calibration.padded(tokenized, directory / "checkpoint", onnx_files.inputs(graph))
    session = ort.session(directory / "shaped", threads=1, level="disabled")
    answered = [Case(case.name, case.text, case.kind, case.inputs, ort.run(session, case.inputs)) for case in tokenized]
    cases.save(answered, directory / "reference")
    return directory / "reference"


def _export(encoder: Any, path: Path) -> None:
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.randint(5, 60, (2, 11))
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    axes = {0: "batch", 1: "sequence"}
    torch.onnx.export(
        Encoder().eval(), (ids, mask), str(path), dynamo=False, opset_version=20,
        input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "last_hidden_state": axes},
    )  # fmt: skip
