"""Samples that are images, as `recipe check` sees them: faults at their field, before anything is built."""

import json

import image_files
import onnx
import pytest

from engine import api
from engine.errors import UserError

RECIPE = """\
name: net
model: {source: net.onnx, task: image-classification, labels: [cat, dog, bird]}
preprocess: {size: 8}
profiles: [{batch: [1, 2, 8]}]
validate: {samples: photos/val.jsonl}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    onnx.save(image_files.network(), tmp_path / "net.onnx")
    image_files.write_photos(tmp_path / "photos", 2)
    (tmp_path / "r.yaml").write_text(RECIPE)
    return tmp_path


def check(project, *rows, recipe=RECIPE):
    (project / "r.yaml").write_text(recipe)
    (project / "photos" / "val.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    api.check(project / "r.yaml")


def refusal(project, *rows, recipe=RECIPE):
    with pytest.raises(UserError) as caught:
        check(project, *rows, recipe=recipe)
    return str(caught.value)


def test_images_with_labels_pass(project):
    check(project, {"image": "photo000.png", "label": "dog"}, {"image": "photo001.png", "label": 2})
    check(project, {"image": "photo000.png"}, recipe=RECIPE.replace("/val.jsonl", ""))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"image": "photo009.png"}, "val.jsonl:2 names an image that is not there"),
        ({"image": "notes.png"}, "the image of val.jsonl:2 cannot be used"),
        ({"image": "photo001.png", "label": 3}, "the label 3 of val.jsonl:2 is none of the model's classes"),
        ({"text": "a fine day"}, "val.jsonl:2 names no usable image"),
    ],
)
def test_a_wrong_line_is_an_error_at_the_field(project, row, says):
    (project / "photos" / "notes.png").write_text("no image")
    error = refusal(project, {"image": "photo000.png"}, row)
    assert "r.yaml:5:21" in error
    assert says in error


def test_texts_for_a_model_of_images_and_images_for_another_are_refused(project):
    assert "val.jsonl names no images, and the model takes images" in refusal(project, {"text": "a fine day"})
    plain = RECIPE.replace("preprocess: {size: 8}\n", "").replace(", task: image-classification", "")
    error = refusal(project, {"image": "photo000.png"}, recipe=plain.replace(", labels: [cat, dog, bird]", ""))
    assert "nothing says how they become the model's inputs" in error


def test_the_same_image_for_calibration_is_refused(project):
    image_files.write_photos(project / "calibration", 1)
    recipe = f"{RECIPE}precision: int8\ncalibrate: {{samples: calibration}}\n"
    assert "1 of the samples in calibrate.samples are also in validate.samples" in refusal(
        project, {"image": "photo000.png"}, recipe=recipe
    )


def test_bench_measures_no_lengths_of_images(project):
    shapes = "bench: {samples: photos, shapes: [{batch: 1, sequence: samples}]}\n"
    assert "names photos, which is no file of texts" in refusal(project, recipe=f"{RECIPE}{shapes}").replace(
        str(project) + "/", ""
    )
