"""The memory that steps take for large models, without mapped pages, which the system drops where memory is short."""

import json
import subprocess

import graphs
import models
import peak_memory
import pytest

from engine.kit.onnx import mapped_weights, onnx_files
from engine.steps.export import Export
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.reference import Reference
from engine.steps.shape_infer import ShapeInfer

MB, GB = 1 << 20, 1 << 30
WORDS = 1 << 20
SIZES = {
    "vocab_size": 30522,
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 512,
}
"""A BERT of 134 million parameters: 510 MiB in fp32, of which the table of words takes 119 MiB."""


STEPS = (
    ("export", Export, "exported", "{}", {"checkpoint": "checkpoint"}),
    ("shape-infer", ShapeInfer, "shaped", "{}", {"exported": "exported"}),
    ("fuse", Fuse, "fused", "{}", {"shaped": "shaped"}),
    ("quantize int8", Quantize, "quantized", "{}", {"fused": "fused"}),
)
FOR_GPUS = (
    ("reference", Reference, "reference", "{}", {"checkpoint": "checkpoint"}),
    ("quantize fp16", Quantize, "half", json.dumps({"way": "fp16"}), {"fused": "shaped", "reference": "reference"}),
    ("quantize Q/DQ", Quantize, "pairs", json.dumps({"way": "int8"}), {"fused": "shaped", "checkpoint": "checkpoint"}),
)
"""The name, class, output, options and inputs of steps; inputs are folders of earlier outputs."""


def with_a_large_table(directory):
    """A tiny BERT whose table of words has 128 MiB; the file has a hole in place of the numbers, and reads as zeros."""
    model = onnx_files.load(graphs.tiny("bert"))
    table = next(tensor for tensor in model.graph.initializer if tensor.name.endswith("word_embeddings.weight"))
    table.dims[0] = WORDS
    length = WORDS * table.dims[1] * 4
    mapped_weights.refer(table, onnx_files.DATA, offset=0, length=length)
    directory.mkdir()
    (directory / onnx_files.MODEL).write_bytes(model.SerializeToString())
    with (directory / onnx_files.DATA).open("wb") as file:
        file.truncate(length)
    return length


def test_weights_are_not_read_into_memory_where_operators_are_fused(tmp_path):
    weights = with_a_large_table(tmp_path / "shaped")
    peak = peak_memory.of_step(Fuse, tmp_path / "fused", shaped=tmp_path / "shaped")
    assert "EmbedLayerNormalization" in peak.printed
    assert onnx_files.folder_size(tmp_path / "fused") >= weights
    assert peak.anonymous < 1.3 * weights + 150 * MB, peak


@pytest.mark.slow
@pytest.mark.whole
def test_each_step_on_a_large_bert_keeps_within_its_memory(tmp_path, capsys):
    checkpoint = models.checkpoint(tmp_path / "checkpoint", task="feature-extraction", **SIZES)
    peaks = {}
    for name, step, out, options, inputs in (*STEPS, *FOR_GPUS):
        folders = {key: tmp_path / folder for key, folder in inputs.items()}
        peaks[name] = peak = peak_memory.of_step(step, tmp_path / out, options, **folders)
        with capsys.disabled():
            print(f"\n{name:15}{peak.anonymous / MB:8.0f} MiB anonymous, {peak.mapped / MB:.0f} MiB mapped", end="")
    assert peaks.pop("export").anonymous < 1.3 * (checkpoint / "model.safetensors").stat().st_size + GB / 2
    largest = SIZES["vocab_size"] * SIZES["hidden_size"] * 4
    assert {name: peak for name, peak in peaks.items() if peak.anonymous > 1.3 * largest + GB} == {}


def test_the_peak_of_a_process_counts_its_heap_and_its_mapped_files_apart(tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.truncate(64 * MB)
    program = f"""
import mmap, time
heap = bytearray(b"x") * ({96 * MB})
with open({str(tmp_path / "file")!r}, "rb") as file:
    data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    sum(data[place] for place in range(0, len(data), 4096))
time.sleep(0.2)
"""
    peak = peak_memory.of_command([peak_memory.sys.executable, "-c", program])
    assert 96 * MB < peak.anonymous < 150 * MB
    assert 64 * MB < peak.mapped < 120 * MB


def test_a_process_in_a_control_group_gets_no_more_memory_than_its_limit():
    words = [peak_memory.sys.executable, "-c", f"import sys; bytearray(b'x') * (int(sys.argv[1]) * {MB})"]
    with peak_memory.group_or_skip(64 * MB) as group:
        peak_memory.of_command([*words, "1"], group)
        with pytest.raises(subprocess.CalledProcessError):
            peak_memory.of_command([*words, "300"], group)
