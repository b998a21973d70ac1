"""docs/models.md is what its table gives, the table holds for a sample, and a trial tells right from wrong."""

import image_page
import image_subjects
import image_table
import image_trials
import numpy as np
import pytest
from image_trials import Trial

from engine.errors import UserError

SAMPLE = (
    "vit/image-classification",
    "clip/zero-shot-image-classification",
    "detr/object-detection",
    "segformer/image-segmentation",
)
"""Pairs that every run of the tests tries again."""


class Written:
    """A model that is a file already, of which a package answers what `cases` says."""

    name, missing = "toy/task", ""

    def __init__(self, *cases):
        self._cases = cases

    def write(self, folder):
        return ("checkpoint",)

    def cases(self, folder, package):
        return iter(self._cases)


def build(folder, words):
    return folder


def failing(error):
    def make(folder, words):
        raise error

    return make


def test_a_model_that_answers_as_the_original_is_built_with_its_worst_difference():
    near = ("batch 1", {"logits": np.ones((1, 2)) + 3e-6}, {"logits": np.ones((1, 2)), "other": np.ones(1)})
    far = ("file grey", {"logits": np.ones((1, 2)) + 7e-6}, {"logits": np.ones((1, 2))})
    trial = image_trials.trial(Written(near, far, near), make=build)
    assert trial == Trial(name="toy/task", verdict="built", worst=7e-6, at="logits, file grey")


@pytest.mark.parametrize("answer", [np.full((1, 2), 1.001), np.full((1, 2), np.nan), np.ones((1, 3))])
def test_a_model_that_answers_otherwise_is_wrong(answer):
    trial = image_trials.trial(Written(("batch 1", {"logits": answer}, {"logits": np.ones((1, 2))})), make=build)
    assert trial.verdict == "wrong"
    assert trial.at == "logits, batch 1"


def test_a_difference_is_a_share_of_the_largest_number_of_the_output():
    assert image_trials.difference(np.array([1000.0, 1.01]), np.array([1000.0, 1.0])) == pytest.approx(1e-5)
    assert image_trials.difference(np.array([0.01]), np.array([0.0])) == pytest.approx(0.01)


@pytest.mark.parametrize("cases", [(), [("batch 1", {"unknown": np.ones(1)}, {"logits": np.ones(1)})]])
def test_a_package_whose_answers_cannot_be_compared_has_failed(cases):
    assert image_trials.trial(Written(*cases), make=build).verdict == "failed"


def test_one_plain_error_is_a_refusal_in_its_own_words():
    error = UserError("/project/it.yaml:7:7: the model takes sound", ["a fact"], "another one")
    trial = image_trials.trial(Written(), make=failing(error))
    assert trial == Trial(name="toy/task", verdict="refused", reason="the model takes sound")


def test_a_model_that_cannot_be_exported_is_refused_with_the_first_fact():
    error = UserError("the model cannot be exported to ONNX", ["torchscript: no operator", "dynamo: none"])
    assert image_trials.trial(Written(), make=failing(error)).reason == f"{error.what}: torchscript: no operator"


@pytest.mark.parametrize("error", [KeyError("a"), UserError("KeyError: 'a'")])
def test_anything_but_a_plain_error_is_a_fault_of_the_program(error):
    assert image_trials.trial(Written(), make=failing(error)).verdict == "failed"


def test_the_page_counts_the_verdicts_and_shows_each_difference_or_reason():
    trials = {
        "vit/image-classification": Trial(
            name="vit/image-classification", verdict="built", worst=2.1e-6, at="logits, batch 5"
        ),
        "swin/image-classification": Trial(name="swin/image-classification", verdict="refused", reason="no | way"),
    }
    page = image_page.page(trials, {"transformers": "5.0", "onnxruntime": "1.0"})
    assert "Of 2 models: 1 built, 1 refused." in page
    assert "| vit | image-classification | built | 2e-06 | logits, batch 5 |" in page
    assert "| swin | image-classification | refused |  | no \\| way |" in page
    assert "transformers 5.0" in page


def test_a_table_is_read_as_it_is_written(tmp_path):
    file = tmp_path / "table.json"
    trials = [Trial(name="a/b", verdict="built", worst=1e-6, at="logits"), Trial(name="c/d", verdict="untried")]
    assert image_table.read(file) == {}
    image_table.write(trials, file)
    assert list(image_table.read(file).values()) == trials
    assert set(image_table.versions(file)) == {"transformers", "onnxruntime"}


def test_the_models_are_many_and_have_names_of_their_own():
    every = [each.name for section in image_page.SECTIONS for each in section.subjects]
    assert len(set(every)) == len(every)
    assert len(image_subjects.PAIRS) >= 60
    assert set(SAMPLE) < set(every)


@pytest.fixture(scope="module")
def table():
    return image_table.read()


def test_the_page_is_what_the_table_gives(table):
    assert image_page.page(table, image_table.versions()) == image_table.PAGE.read_text()


def test_no_model_of_the_table_is_wrong_or_fails_without_a_plain_error(table):
    assert set(table) <= set(image_table.SUBJECTS)
    assert {name: row.reason or row.at for name, row in table.items() if row.verdict not in image_table.ALLOWED} == {}
    assert all(row.reason for row in table.values() if row.verdict != "built")


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_fixed_sample_of_the_table_is_still_true(name, table):
    again = image_trials.trial(image_table.SUBJECTS[name])
    assert (again.verdict, again.reason) == (table[name].verdict, table[name].reason)
