"""Samples that are image files: which files count, what their labels are, and clear words where something is wrong."""

import json

import image_files
import pytest

from engine.errors import StepError
from engine.kit.inputs import image_samples, overlap, samples

CLASSES = {"cat": 0, "dog": 1}


@pytest.fixture
def photos(tmp_path):
    """A folder with two images of cats, one of a dog, one without a class, and files that are no images."""
    folder = tmp_path / "photos"
    for label, count in (("cat", 2), ("dog", 1)):
        image_files.write_photos(folder / label, count, seed=count)
    image_files.write_photos(folder, 1, seed=7)
    (folder / "README.md").write_text("photos")
    (folder / ".hidden.png").write_bytes(b"")
    (folder / ".cache").mkdir()
    return folder


def lines(folder, *rows, name="val.jsonl"):
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def refusal(path, **options):
    with pytest.raises(StepError) as caught:
        image_samples.read(path, **options)
    return str(caught.value)


def numbers(path):
    return {each.name: each.number(CLASSES) for each in image_samples.read(path)}


def test_a_folder_around_an_image_has_the_name_of_its_class(photos):
    assert numbers(photos) == {
        "cat/photo000.png": 0, "cat/photo001.png": 0, "dog/photo000.png": 1, "photo000.png": None,
    }  # fmt: skip
    (photos / "dog").rename(photos / "wolf")
    assert numbers(photos)["wolf/photo000.png"] is None
    (photos / "wolf").rename(photos / "1")
    assert numbers(photos)["1/photo000.png"] == 1


def test_lines_name_images_and_their_classes_by_number_or_name(photos):
    path = lines(
        photos, {"image": "cat/photo000.png", "label": 1}, {"image": "dog/photo000.png", "label": "cat"},
        {"image": "photo000.png"},
    )  # fmt: skip
    assert numbers(path) == {"val.jsonl:1": 1, "val.jsonl:2": 0, "val.jsonl:3": None}
    assert image_samples.files(path)[0].keys() == {"cat/photo000.png", "dog/photo000.png", "photo000.png"}
    assert image_samples.are_images(path)
    assert samples.is_readable(path)


def test_the_label_of_an_image_with_texts_is_one_of_its_texts(photos):
    rows = [{"image": "photo000.png", "label": "a dog"}, {"image": "photo000.png", "texts": ["x", "y"], "label": "y"}]
    first, second = image_samples.read(lines(photos, *rows), ["a cat", "a dog"])
    assert (first.texts, first.number({}), second.texts, second.number({})) == (("a cat", "a dog"), 1, ("x", "y"), 1)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"image": "no.png"}, "val.jsonl:2 names an image that is not there"),
        ({"image": "../outside.png"}, "images lie in the folder of val.jsonl, or below it"),
        ({"image": "{folder}/photo000.png"}, "images lie in the folder of val.jsonl, or below it"),
        ({"image": 3}, "val.jsonl:2 names no usable image"),
        ({"image": "photo000.png", "size": 3}, "val.jsonl:2 names no usable image"),
        ({"image": "photo000.png", "texts": "a cat"}, "val.jsonl:2 has texts that are no list of texts"),
        ({"text": "no image"}, "val.jsonl:2 names no usable image"),
        ("{", "val.jsonl:2 is no JSON"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(photos, row, says):
    (photos.parent / "outside.png").write_bytes(b"")
    if isinstance(row, dict) and isinstance(row.get("image"), str):
        row = {**row, "image": row["image"].format(folder=photos)}
    assert says in refusal(lines(photos, {"image": "photo000.png"}, row))


def test_a_label_that_is_no_class_names_its_line(photos):
    for label in ("wolf", 1.5, True):
        [image] = image_samples.read(lines(photos, {"image": "photo000.png", "label": label}))
        with pytest.raises(StepError, match=rf"the label {label!r} of val.jsonl:1 is none of the model's classes"):
            image.number(CLASSES)


def test_a_folder_without_images_and_one_that_is_too_deep_are_refused(photos, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no image file" in refusal(tmp_path / "empty")
    image_files.write_photos(photos / "cat" / "old", 1)
    assert "cat/old lies too deep in the samples photos" in refusal(photos)


def test_images_among_texts_are_refused_by_their_line(tmp_path):
    path = lines(tmp_path, {"text": "a fine day"}, {"image": "x.png"})
    assert not image_samples.are_images(path)
    with pytest.raises(StepError, match=r"val.jsonl:2 names an image, and the model takes texts"):
        samples.texts(path)


def test_a_header_that_is_none_and_a_pointer_of_git_lfs_are_refused(tmp_path):
    files = image_files.write_files(tmp_path)
    good, bad = (image_samples.SampleImage("x", path=files[name]) for name in ("rgb", "mislabelled"))
    good.refuse_unreadable()
    with pytest.raises(StepError, match="the image of x cannot be used"):
        bad.refuse_unreadable()
    files["rgb"].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    with pytest.raises(StepError, match="git lfs pull"):
        good.refuse_unreadable()


def test_drawn_images_are_the_same_each_time_and_others_for_another_seed():
    first, again, other = image_samples.drawn(), image_samples.drawn(), image_samples.drawn(seed=100)
    assert first == again
    assert not {each.drawn for each in first} & {each.drawn for each in other}
    for image in first:
        image.refuse_unreadable()


def test_an_image_under_another_name_is_an_overlap(photos, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.png").write_bytes((photos / "dog" / "photo000.png").read_bytes())
    image_files.write_photos(other, 2, seed=70)
    assert overlap.shared(f"file:{other}", f"file:{photos}", 10) == ("a.png",)
    assert overlap.shared(f"file:{photos}", f"file:{other}", 2) == ()
