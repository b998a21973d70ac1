"""Export: right for every mask and shape, the same bytes each time, and clear about what it cannot do."""

from __future__ import annotations

import shutil

import models
import numpy as np
import onnx
import pytest
from safetensors.torch import load_file, save_file

from engine.errors import StepError
from engine.kit.inputs import synthetic, token_rows
from engine.kit.onnx import onnx_files
from engine.kit.reference import torch_models
from engine.recipe.schema import ModelSection, Recipe
from engine.runtimes.onnxruntime import session as ort
from engine.steps import export
from engine.steps.export import Export

TASKS = {
    "bert": "feature-extraction",
    "roberta": "text-classification",
    "distilbert": "token-classification",
    "mpnet": "question-answering",
    "electra": "text-classification",
    "deberta-v2": "feature-extraction",
    "albert": "fill-mask",
    "xlm-roberta": "feature-extraction",
}
CLOSE = 2e-5


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return models.checkpoint(tmp_path_factory.mktemp("bert"), "bert", tokenizer=False)


@pytest.fixture
def broken_torchscript(monkeypatch):
    """The first exporter fails, as it does for models that it has no symbols for."""
    real = export._export

    def fail(exporter, *arguments, **options):
        if exporter == "torchscript":
            raise RuntimeError("no symbolic function for aten::odd\nand a page of advice")
        return real(exporter, *arguments, **options)

    monkeypatch.setattr(export, "_export", fail)


def test_an_original_that_answers_nan_is_not_blamed_on_the_export(bert, tmp_path, monkeypatch):
    folder = shutil.copytree(bert, tmp_path / "damaged")
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    monkeypatch.setattr(Export, "_try", lambda *_: "last_hidden_state is off by nan, one row")
    with pytest.raises(StepError) as caught:
        Export(task="feature-extraction").run(tmp_path / "out", checkpoint=folder)
    assert caught.value.what == "the original model answers NaN: last_hidden_state"
    assert "weights" in caught.value.hint


def rows(module, *lengths):
    generator = np.random.default_rng(3)
    return [synthetic.row(generator, torch_models.vocabulary(module), length) for length in lengths]


def worst_difference(module, directory, inputs):
    session = ort.session(directory, threads=1)
    answers, expected = ort.run(session, inputs), torch_models.call(module, inputs)
    assert list(answers) == list(expected)
    return max(float(abs(answers[name] - expected[name]).max()) for name in expected)


@pytest.mark.parametrize("architecture", models.ARCHITECTURES)
@pytest.mark.sample(2)
def test_each_architecture_answers_as_pytorch_does_on_unseen_shapes_and_masks(architecture, tmp_path):
    task = TASKS[architecture]
    checkpoint = models.checkpoint(tmp_path / "checkpoint", architecture, task=task, tokenizer=False)
    report = Export(task=task).run(tmp_path / "out", checkpoint=checkpoint)
    assert report.exporter == "torchscript"
    module = torch_models.load(checkpoint, task)
    pad = torch_models.vocabulary(module).pad
    some = rows(module, 61, 2, 30, 9, 50)
    right = token_rows.batch(some, pad=pad)
    for inputs in (
        token_rows.batch(some[:1], pad=pad),
        token_rows.batch(some[1:2], pad=pad),
        right,
        token_rows.batch(some, pad=pad, side="left"),
        token_rows.punch_hole(right),
    ):
        assert worst_difference(module, tmp_path / "out", inputs) < CLOSE
    # A model whose masks change nothing would have proved nothing.
    whole, holed = (torch_models.call(module, given) for given in (right, token_rows.punch_hole(right)))
    assert max(abs(whole[name] - holed[name]).max() for name in whole) > 50 * CLOSE


@pytest.mark.parametrize("architecture", ["bert", "deberta-v2"])
@pytest.mark.sample(1)
def test_two_exports_are_byte_identical_whatever_the_directory(architecture, tmp_path):
    checkpoint = models.checkpoint(tmp_path / "checkpoint", architecture, tokenizer=False)
    Export().run(tmp_path / "first", checkpoint=checkpoint)
    elsewhere = tmp_path / "some" / "other place"
    elsewhere.mkdir(parents=True)
    Export().run(elsewhere / "second", checkpoint=checkpoint)
    content = (tmp_path / "first" / "model.onnx").read_bytes()
    assert content == (elsewhere / "second" / "model.onnx").read_bytes()
    assert str(tmp_path).encode() not in content


def test_names_axes_and_opset_are_those_of_the_contract(bert, tmp_path, capsys):
    report = Export().run(tmp_path / "out", checkpoint=bert)
    model = onnx_files.load(tmp_path / "out")
    onnx.checker.check_model(model)
    taken = onnx_files.inputs(model)
    assert list(taken) == ["input_ids", "attention_mask", "token_type_ids"]
    assert {(value.dtype, value.shape) for value in taken.values()} == {("int64", ("batch", "sequence"))}
    assert onnx_files.outputs(model)["last_hidden_state"].shape == ("batch", "sequence", 32)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 20)]
    assert list(report.inputs) == ["input_ids", "attention_mask", "token_type_ids"]
    assert report.task == "feature-extraction"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["model.onnx"]
    log = capsys.readouterr()
    assert log.out.splitlines()[:2] == [
        "loading the model for feature-extraction",
        "exporting with the torchscript exporter, opset 20",
    ]
    assert log.err == ""


@pytest.mark.parametrize(
    ("task", "shapes"),
    [
        ("text-classification", {"logits": ("batch", 3)}),
        ("token-classification", {"logits": ("batch", "sequence", 3)}),
        ("question-answering", {"start_logits": ("batch", "sequence"), "end_logits": ("batch", "sequence")}),
    ],
)
def test_outputs_have_their_names_and_axes_also_with_a_random_head(bert, tmp_path, task, shapes):
    labels = 3 if "classification" in task else None
    Export(task=task, num_labels=labels, random_head=True).run(tmp_path / "out", checkpoint=bert)
    outputs = onnx_files.outputs(onnx_files.load(tmp_path / "out"))
    assert {name: value.shape for name, value in outputs.items()} == shapes


def test_weights_above_the_limit_go_to_one_data_file_and_still_answer_right(bert, tmp_path, monkeypatch):
    monkeypatch.setattr(Export, "inline_limit", 50_000)
    Export().run(tmp_path / "first", checkpoint=bert)
    Export().run(tmp_path / "second", checkpoint=bert)
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "first" / "model.onnx").stat().st_size < 60_000
    for name in ("model.onnx", "model.onnx.data"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    module = torch_models.load(bert, "feature-extraction")
    assert worst_difference(module, tmp_path / "first", token_rows.batch(rows(module, 20, 9), pad=0)) < CLOSE


@pytest.mark.slow
def test_where_the_first_exporter_fails_the_second_is_used_and_said(bert, tmp_path, broken_torchscript, capsys):
    report = Export().run(tmp_path / "out", checkpoint=bert)
    assert report.exporter == "dynamo"
    log = capsys.readouterr().out
    assert "the torchscript exporter failed: no symbolic function for aten::odd\n" in log
    assert "a page of advice" not in log
    model = onnx_files.load(tmp_path / "out")
    assert {value.shape for value in onnx_files.inputs(model).values()} == {("batch", "sequence")}
    assert str(tmp_path).encode() not in (tmp_path / "out" / "model.onnx").read_bytes()
    module = torch_models.load(bert, "feature-extraction")
    assert worst_difference(module, tmp_path / "out", token_rows.batch(rows(module, 50, 9, 1), pad=0)) < CLOSE
    Export().run(tmp_path / "again", checkpoint=bert)
    first, second = ((tmp_path / name / "model.onnx").read_bytes() for name in ("out", "again"))
    assert first == second


def test_a_graph_that_answers_something_else_is_never_handed_on(bert, tmp_path, monkeypatch):
    real = onnx_files.save

    def tampered(model, directory, **options):
        weight = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
        weight.raw_data = b"\0" * len(weight.raw_data)
        real(model, directory, **options)

    monkeypatch.setattr(onnx_files, "save", tampered)
    with pytest.raises(StepError) as caught:
        Export().run(tmp_path / "out", checkpoint=bert)
    what, first, second, hint = str(caught.value).splitlines()
    assert what == "BertModel cannot be exported to ONNX"
    assert first.startswith("  torchscript: last_hidden_state is off by ")
    assert second.startswith("  dynamo: last_hidden_state is off by ")
    assert hint.startswith("hint: choose a model of another architecture, such as ")
    assert "export the model to ONNX yourself" in hint
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_is_not_supported_stops_before_any_weight_is_read(bert, tmp_path):
    with pytest.raises(StepError) as caught:
        Export(task="depth-estimation").run(tmp_path / "out", checkpoint=bert)
    assert "depth-estimation is not supported yet" in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("source", ["file:/models/net.onnx", "python:package/net.onnx", "file:/models/NET.ONNX"])
def test_an_onnx_source_needs_no_export(source):
    assert Export.for_recipe(Recipe(name="r", model=ModelSection(source=source))) is None


def test_only_what_changes_the_graph_is_an_option():
    model = ModelSection(source="hf:some/model", task="text-classification", num_labels=2, random_head=True)
    for precision in ("fp32", "int8"):
        step = Export.for_recipe(Recipe(name="r", model=model, precision=precision))
        assert step.options() == {
            "task": "text-classification", "num_labels": 2, "random_head": True, "images": None, "opset": 20,
        }  # fmt: skip
    assert Export.inputs() == ("checkpoint",)
