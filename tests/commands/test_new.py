"""`recipe new` on local models: the recipe passes `check`, a few of them are built, and nothing is replaced."""

import json

import pytest
import yaml

from tests.support import models, unseen_models
from tests.support.program import Program


def _model(folder, name):
    """Write a model into the folder, and return what names it on the command line."""
    return models.onnx_vision(folder / "vision.onnx").name if name == "vision" else unseen_models.write(name, folder)


def _written(folder, name, *words):
    """Return the new recipe of a model, which passed `recipe check`, and what was printed."""
    done = Program(folder)("new", _model(folder, name), "-o", "it.yaml", *words, expect=0)
    assert "it.yaml passes `recipe check`" in done.stdout
    text = (folder / "it.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=recipe.schema.json\n")
    assert json.loads((folder / "recipe.schema.json").read_text())["properties"]
    fields = yaml.safe_load(text)
    assert (folder / fields["validate"]["samples"]).exists()
    return fields, text, done.stdout


def test_a_new_recipe_passes_check(tmp_path):
    _written(tmp_path, "mpnet-pooled")


def test_a_new_recipe_is_named_after_its_file_and_says_that_sizes_are_guesses_with_which_the_model_runs(tmp_path):
    fields, text, screen = _written(tmp_path, "vision")
    assert (fields["name"], fields["package"]["triton"]["name"]) == ("it", "it")
    assert "profiles: [{batch: [1, 1, 8]}]: guesses, the model runs with them" in screen
    assert "guesses, the model runs with them; put your own sizes" in " ".join(text.replace("# ", "").split())


@pytest.mark.parametrize("name", ["albert-answers", "towers"])
def test_a_new_recipe_names_a_gpu(tmp_path, name):
    fields, text, _ = _written(tmp_path, name, "--device", "Tesla T4")
    assert fields["target"] == {"device": "T4", "runtime": "tensorrt"}
    assert fields["precision"] == "fp16"
    assert "SM75, 16 GiB" in text


def test_nothing_that_exists_is_touched(tmp_path):
    model = _model(tmp_path, "vision")
    (tmp_path / "vision.yaml").write_text("mine")
    (tmp_path / "recipe.schema.json").write_text("mine, too")
    (tmp_path / "samples" / "other").mkdir(parents=True)
    (tmp_path / "samples" / "other" / "1.png").write_text("mine as well")
    done = Program(tmp_path)("new", model, expect=2)
    assert done.stderr == "error: vision.yaml exists: it is left as it is\nhint: name another file: -o FILE\n"
    Program(tmp_path)("new", model, "-o", "other.yaml", expect=0)
    assert (tmp_path / "vision.yaml").read_text() == "mine"
    assert (tmp_path / "recipe.schema.json").read_text() == "mine, too"
    assert [path.name for path in (tmp_path / "samples" / "other").iterdir()] == ["1.png"]
    assert (tmp_path / "samples" / "other" / "1.png").read_text() == "mine as well"
    assert yaml.safe_load((tmp_path / "other.yaml").read_text())["validate"]["samples"] == "samples/other-2"


def test_a_model_of_the_hub_needs_a_network(tmp_path):
    program = Program(tmp_path)
    program.environment["HF_HUB_OFFLINE"] = "1"
    program.environment["HF_HOME"] = str(tmp_path / "hub")
    done = program("new", "owner/name", expect=1)
    assert "hf:owner/name" in done.stderr
    assert "HF_HUB_OFFLINE" in done.stderr
    assert not list(tmp_path.glob("*.yaml"))


_SETTINGS = {
    "trtexec": (
        "vision",
        ("--from-trtexec", "trtexec --onnx=vision.onnx --fp16 --workspace=512 --verbose", "--device", "T4"),
        ("precision", "fp16"),
        "not taken over: --verbose:",
    ),
    "optimum": (
        "distilbert-twenty-classes",
        (
            "--from-optimum",
            "optimum-cli export onnx --model distilbert-twenty-classes --task text-classification --opset 18 out",
        ),
        ("target", {"device": "cpu", "runtime": "onnxruntime"}),
        "not taken over: --opset 18:",
    ),
    "pbtxt": (
        "vision",
        ("vision.onnx", "--from-pbtxt", "config.pbtxt"),
        ("package", {"triton": {"name": "net", "max_batch_size": 4, "dynamic_batching": {}}}),
        "not taken over: input:",
    ),
}
_CONFIG = """
name: "net" backend: "onnxruntime" max_batch_size: 4 dynamic_batching {}
input [{name: "image" data_type: TYPE_FP32 dims: [3, 8, 8]}]
"""


@pytest.mark.parametrize("tool", _SETTINGS)
def test_settings_of_another_tool_are_fields_or_named(tmp_path, tool):
    model, words, (field, value), named = _SETTINGS[tool]
    _model(tmp_path, model)
    (tmp_path / "config.pbtxt").write_text(_CONFIG)
    done = Program(tmp_path)("new", *words, "-o", "it.yaml", expect=0)
    assert named in done.stdout
    text = (tmp_path / "it.yaml").read_text()
    assert yaml.safe_load(text)[field] == value
    assert f"# - {named.removeprefix('not taken over: ')}" in text


def test_settings_for_a_gpu_need_a_gpu_by_name_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    _model(tmp_path, "vision")
    done = Program(tmp_path)("new", "--from-trtexec", "trtexec --onnx=vision.onnx", expect=2)
    assert "--device T4" in done.stderr
    assert not (tmp_path / "vision.yaml").exists()


def test_a_refused_model_leaves_no_file(tmp_path):
    models.checkpoint(tmp_path / "model", "bert")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"")
    before = sorted(tmp_path.rglob("*"))
    done = Program(tmp_path)("new", "model", "-o", "it.yaml", expect=2)
    assert "model.safetensors is cut off" in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_in_the_working_folder_needs_no_option(tmp_path):
    (tmp_path / "models").mkdir()
    program = Program(tmp_path)
    done = program("new", f"models/{_model(tmp_path / 'models', 'vision')}", "-o", "recipes/a/it.yaml", expect=0)
    assert "--allow-path" not in done.stdout
    assert "wrote recipe.toml" in done.stdout
    program("check", "recipes/a/it.yaml", expect=0)


def test_a_model_outside_the_project_says_what_commands_need(tmp_path):
    model = _model(tmp_path, "vision")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").touch()
    program = Program(tmp_path / "project")
    done = program("new", f"../{model}", "-o", "it.yaml", expect=0)
    assert not (tmp_path / "project" / "recipe.toml").exists()
    command = done.stdout.partition("next: recipe ")[2].split()
    program("check", *command[1:], expect=0)
    assert "copy it into there" in done.stdout


def test_a_model_of_a_python_package_needs_no_option(tmp_path):
    package = tmp_path / "elsewhere" / "model_of_a_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    _model(package, "convbert")
    (tmp_path / "project").mkdir()
    program = Program(tmp_path / "project")
    program.environment["PYTHONPATH"] = str(tmp_path / "elsewhere")
    done = program("new", "python:model_of_a_package/convbert", "-o", "it.yaml", expect=0)
    assert "--allow-path" not in done.stdout
