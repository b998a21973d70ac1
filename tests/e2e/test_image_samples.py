"""Image files as samples: built up to validate, explained by the name of the file that changed, and locked."""

import image_files
import onnx
import pytest
from program import Program

RECIPE = """\
name: net
model: {source: net.onnx, task: image-classification, labels: [cat, dog, bird]}
preprocess: {size: 8, mean: [0.5], std: [0.5]}
profiles: [{batch: [1, 2, 8]}]
validate: {samples: photos, metric: {name: accuracy, at_least: 0.0}}
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    onnx.save(image_files.network(), tmp_path / "net.onnx")
    for label in ("cat", "dog"):
        image_files.write_photos(tmp_path / "photos" / label, 2, seed=ord(label[0]))
    (tmp_path / "r.yaml").write_text(RECIPE)
    return Program(tmp_path)


def test_a_changed_image_is_named_and_rebuilds_the_reference_alone(project):
    words = ("r.yaml", "--to", "validate")
    first = project("build", *words, expect=0)
    assert "accuracy 0" in first.stdout
    assert "up to date" in project("build", *words, expect=0).stderr
    photo = project.folder / "photos" / "cat" / "photo001.png"
    photo.write_bytes((project.folder / "photos" / "dog" / "photo001.png").read_bytes())
    findings = project.why("r.yaml")
    assert [change["row"] for change in findings["reference"]["changes"]] == ["inputs.samples/cat/photo001.png"]
    states = project.states(*words)
    assert {job for job, state in states.items() if state == "built"} == {"reference", "validate"}


def test_a_broken_image_is_an_error_of_the_check_at_its_field(project):
    (project.folder / "photos" / "dog" / "photo001.png").write_text("no image")
    refused = project("check", "r.yaml", expect=2)
    assert "r.yaml:5:21: the image of dog/photo001.png cannot be used" in refused.stderr


def test_a_lock_names_the_image_that_is_not_as_locked(project):
    project("lock", "r.yaml", expect=0)
    (project.folder / "photos" / "dog" / "photo001.png").unlink()
    refused = project("build", "--locked", "r.yaml", expect=2)
    assert "photos::dog/photo001.png: locked" in refused.stderr


def test_folders_are_the_classes_of_a_model_whose_classes_the_recipe_does_not_name(project):
    for number, label in enumerate(("cat", "dog")):
        (project.folder / "photos" / label).rename(project.folder / "photos" / str(number))
    (project.folder / "r.yaml").write_text(RECIPE.replace(", labels: [cat, dog, bird]", ""))
    assert "accuracy " in project("build", "r.yaml", "--to", "validate", expect=0).stdout
