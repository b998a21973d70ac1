"""Calibration on image files: those of a folder or drawn ones, and none that validation has."""

import image_files
import onnx
import pytest

from engine.errors import StepError
from engine.kit.inputs import cases
from engine.kit.onnx import onnx_files
from engine.kit.quantization import calibration
from engine.kit.reference import image_cases
from engine.recipe.image_input import Images
from engine.steps.quantize import Quantize

STEP = Quantize(images=Images(), preprocess={"size": 8}, limit=3)


@pytest.fixture
def checkpoint(tmp_path):
    (tmp_path / "net").mkdir()
    onnx.save(image_files.network(), tmp_path / "net" / "model.onnx")
    return tmp_path / "net"


def test_a_folder_of_images_is_prepared_as_for_the_package_up_to_the_limit(checkpoint, tmp_path):
    image_files.write_photos(tmp_path / "photos", 5)
    found = STEP.cases(checkpoint, checkpoint, tmp_path / "photos")
    assert [(case.name, case.inputs["pixels"].shape) for case in found] == [
        (f"photo00{number}.png", (1, 3, 8, 8)) for number in range(3)
    ]
    assert 0 <= found[0].inputs["pixels"].min() < found[0].inputs["pixels"].max() <= 1


def test_without_samples_images_are_drawn_that_validation_does_not_draw(checkpoint, capsys):
    drawn = Quantize(images=Images(), preprocess={"size": 8}).cases(checkpoint, checkpoint, None)
    assert "drawn images instead" in capsys.readouterr().out
    specs = onnx_files.inputs(onnx_files.load_graph(checkpoint))
    inputs = image_cases.maker(Images(), checkpoint, specs, {"size": 8}, None)
    validated = {case.file for case in image_cases.of_samples(inputs, None, checkpoint)}
    files = {case.file for case in drawn}
    assert (len(files), len(validated)) == (32, 8)
    assert not files & validated


def test_an_image_of_validation_is_refused_under_any_name(checkpoint, tmp_path):
    image_files.write_photos(tmp_path / "photos", 2)
    image_files.write_photos(tmp_path / "others", 2, seed=50)
    cases.save(STEP.cases(checkpoint, checkpoint, tmp_path / "photos"), tmp_path / "reference")
    options = {"limit": None, "reference": tmp_path / "reference"}
    calibration.refuse_overlap(tmp_path / "others", checkpoint, {}, **options)
    (tmp_path / "photos" / "photo001.png").rename(tmp_path / "others" / "x.png")
    with pytest.raises(StepError, match=r"1 of the samples in calibrate.samples are also in validate.samples"):
        calibration.refuse_overlap(tmp_path / "others", checkpoint, {}, **options)
