"""The tasks that there are: found by their files, each whole, and each in the documents."""

import importlib
import re
from pathlib import Path

import pytest

from engine import tasks
from engine.errors import StepError
from engine.recipe.model_config import PartName
from engine.tasks import TENSORS, Classes, Generates, Modality, Task, answer, heads

ROOT = Path(__file__).parents[2]
EVERY = tasks.every()


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task.name)
def test_each_task_stands_in_the_documents(task):
    assert f"`{task.name}`" in (ROOT / "docs" / ("generation.md" if task.generates else "tasks.md")).read_text()


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task.name)
def test_each_task_says_models_that_packages_may_have(task):
    from typing import get_args

    assert set(task.parts) <= set(get_args(PartName))


@pytest.mark.parametrize("task", [each for each in EVERY if each.answers], ids=lambda task: task.name)
def test_what_makes_answers_is_there(task):
    assert callable(importlib.import_module(task.answers).make)


@pytest.mark.parametrize("task", [each for each in EVERY if each.auto_class], ids=lambda task: task.name)
def test_the_classes_are_those_of_transformers(task):
    transformers = importlib.import_module("transformers")
    assert all(hasattr(transformers, each) for each in (task.auto_class, task.encoder_class) if each)


def test_what_a_checkpoint_can_name_is_a_task():
    assert set(heads.NAMED) <= set(tasks.names())


def test_a_task_is_found_by_its_name():
    assert tasks.find("question-answering").paired
    assert tasks.find("text-classification").classes is Classes.ROWS
    assert tasks.find("image-classification").modality is Modality.IMAGE
    assert tasks.find("text-generation").generates is Generates.CONTINUES


def test_a_task_that_is_none_is_refused_with_those_that_there_are():
    with pytest.raises(StepError, match="there is no task 'captioning'") as caught:
        tasks.find("captioning")
    assert "fill-mask" in str(caught.value)
    assert tasks.known("captioning") is tasks.known(None) is None


def test_tensors_are_no_task_that_a_recipe_may_say():
    assert tasks.find(TENSORS.name) is TENSORS
    assert TENSORS.name not in tasks.names()


def test_a_hint_names_the_tasks_that_suit():
    assert tasks.either(lambda task: task.generates) == "text-generation or text2text-generation"


def test_the_code_of_a_task_is_its_own_and_of_what_makes_its_answers():
    assert tasks.modules("fill-mask") == ("engine.tasks.fill_mask",)
    assert tasks.makers("fill-mask") == ("engine.kit.triton.answers.fillings",)
    assert tasks.makers("text-generation") == ()


def test_where_the_checkpoint_says_the_task_the_code_of_each_counts_that_it_can_name():
    assert set(tasks.modules(None)) == {tasks.modules(name)[0] for name in heads.NAMED}
    assert set(tasks.makers(None)) == {task.answers for task in EVERY if task.answers and task.name in heads.NAMED}


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task.name)
def test_a_task_is_frozen(task):
    with pytest.raises(AttributeError):
        task.name = "another"
    assert re.fullmatch(r"[a-z0-9-]+", task.name)
    assert isinstance(task, Task)


def test_names_of_the_first_release_go_on_working():
    assert tasks.Tensor is tasks.AnswerTensor
    assert answer.found is answer.output
    with pytest.raises(AttributeError, match="lost"):
        answer.lost  # noqa: B018
