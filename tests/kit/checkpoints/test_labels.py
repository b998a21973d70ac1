"""What a checkpoint calls its classes, and what makes a score of a logit."""

import json

import pytest

from engine.errors import StepError
from engine.kit.checkpoints import labels


@pytest.fixture
def saying(tmp_path):
    def with_config(**config):
        (tmp_path / "config.json").write_text(json.dumps(config))
        return tmp_path

    return with_config


def test_names_are_those_of_the_config(saying):
    assert labels.names(saying(id2label={"1": "good", "0": "bad"}), 2) == ["bad", "good"]
    assert labels.names(saying(architecture="resnet18", label_names=["cat", "dog"]), 2) == ["cat", "dog"]


@pytest.mark.parametrize("id2label", [{"0": "bad"}, {"0": "a", "7": "b"}, ["a", "b"], None])
def test_names_that_are_not_as_many_as_the_classes_are_not_used(saying, id2label):
    assert labels.names(saying(id2label=id2label), 2) == ["LABEL_0", "LABEL_1"]


def test_classes_of_a_model_that_is_not_transformers_own_are_numbers(saying, tmp_path):
    assert labels.names(saying(architecture="resnet18"), 3) == ["0", "1", "2"]
    (tmp_path / "model.onnx").touch()
    assert labels.names(tmp_path, 2) == ["0", "1"]


def test_the_number_of_a_model_that_is_not_transformers_own_is_its_score(saying):
    assert labels.score(saying(architecture="resnet18"), 1) == "number"


@pytest.mark.parametrize("names", [{"1": "bad", "2": "good"}, {"0": "a", "2": "b", "10": "c"}])
def test_numbers_of_classes_that_leave_some_out_are_refused(saying, names):
    model = ", ".join(map(str, range(len(names))))
    with pytest.raises(StepError, match=f"id2label names the classes {', '.join(names)}; the model has {model}"):
        labels.refuse_gaps(saying(id2label=names))
    labels.refuse_gaps(saying(id2label={"1": "good", "0": "bad"}))
    labels.refuse_gaps(saying())


@pytest.mark.parametrize(
    ("problem", "classes", "score"),
    [
        (None, 2, "softmax"),
        (None, 1, "sigmoid"),
        ("regression", 1, "number"),
        ("regression", 3, "number"),
        ("single_label_classification", 2, "softmax"),
        ("multi_label_classification", 3, "sigmoid"),
        ("multi_label_classification", 1, "sigmoid"),
    ],
)
def test_the_kind_of_problem_decides_the_score(saying, problem, classes, score):
    assert labels.score(saying(problem_type=problem), classes) == score


def test_the_names_of_the_recipe_are_those_of_an_onnx_files_classes(tmp_path):
    (tmp_path / "model.onnx").touch()
    assert labels.names(tmp_path, 2) == ["0", "1"]
    assert labels.names(tmp_path, None) == []
    labels.write(tmp_path, ["cat", "dog, or wolf"])
    assert labels.names(tmp_path, 2) == labels.names(tmp_path, None) == ["cat", "dog, or wolf"]
    assert labels.numbers(tmp_path) == {"cat": 0, "dog, or wolf": 1}
