"""Data files: the largest tensors have files of their own, which a chain of steps leaves as they are."""

import graphs
import numpy as np
import pytest
from onnx import numpy_helper

from engine import digest
from engine.kit.onnx import external_data, onnx_files
from engine.steps.fuse import Fuse
from engine.steps.quantize import Quantize
from engine.steps.shape_infer import ShapeInfer

DATA = onnx_files.DATA


@pytest.fixture
def apart(monkeypatch):
    """Let tensors of 4 KiB have files of their own, and models of 8 KiB data files."""
    monkeypatch.setattr(external_data, "_ALONE", 1 << 12)
    monkeypatch.setattr(onnx_files.save, "__kwdefaults__", {"threshold": 1 << 13})


def test_a_large_tensor_has_a_file_of_its_own_and_small_ones_share_one(apart, tmp_path):
    model = graphs.layers(features=64, hidden=128)
    onnx_files.save(onnx_files.copied(model), tmp_path)
    names = onnx_files.data_files(onnx_files.load_graph(tmp_path))
    large = [tensor for tensor in model.graph.initializer if len(tensor.raw_data) >= 1 << 12]
    assert large
    assert [name for name in names if name != DATA] == [f"{DATA}-{number:03}" for number, _ in enumerate(large, 1)]
    for number, tensor in enumerate(large, 1):
        assert (tmp_path / f"{DATA}-{number:03}").read_bytes() == tensor.raw_data
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["model.onnx", *names])
    assert onnx_files.load(tmp_path) == model


def test_no_file_is_empty(apart, tmp_path):
    model = graphs.layers()
    del model.graph.initializer[1:]
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(1 << 12, np.float32), "only"))
    onnx_files.save(model, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", f"{DATA}-001"]


def test_a_model_of_any_size_has_some_hundred_files_at_most():
    for total in (1 << 20, 1 << 29, 3 << 30, 1 << 36):
        assert total // external_data._least_alone(total) < 512
    assert external_data._least_alone(500 << 20) == 1 << 20


def contents(folder):
    """Return the digest of each file of a folder, with its size."""
    return {digest.of_file(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def test_each_step_adds_only_the_tensors_that_it_changes(apart, tmp_path):
    source = onnx_files.load_mapped(graphs.tiny("bert"))
    onnx_files.save(source, tmp_path / "exported")
    ShapeInfer().run(tmp_path / "shaped", exported=tmp_path / "exported")
    Fuse().run(tmp_path / "fused", shaped=tmp_path / "shaped")
    Quantize(way="int4 weights").run(tmp_path / "int4", fused=tmp_path / "fused")
    stored = {}
    added = {}
    for name in ("exported", "shaped", "fused", "int4"):
        new = {content: size for content, size in contents(tmp_path / name).items() if content not in stored}
        added[name] = sum(new.values()) - (tmp_path / name / "model.onnx").stat().st_size
        stored |= new
    weights = added["exported"]
    assert weights > 80_000
    assert added["shaped"] == 0
    assert added["fused"] < weights / 2, "queries, keys and values of each layer are one weight now"
    assert added["int4"] < weights / 4
    first, last = contents(tmp_path / "exported"), contents(tmp_path / "int4")
    assert max(last[each] for each in first.keys() & last.keys()) > 10_000, "the table of words is one file in all"
