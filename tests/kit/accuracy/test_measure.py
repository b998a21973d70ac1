"""Wrong models must not pass validation, and correct models must pass, however odd they are."""

import numpy as np
import pytest
import wrong_models

from engine.errors import JudgementError
from engine.kit.onnx import onnx_files
from engine.recipe.schema import Bound
from engine.steps.reference import Reference
from engine.steps.validate import Validate


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Return a function that writes a model and its reference once, and returns their folder."""
    written = {}

    def of(name, net):
        if name not in written:
            folder = tmp_path_factory.mktemp("original")
            onnx_files.save(net.model(), folder / "model")
            samples = None
            if net.samples:
                samples = folder / "samples.npz"
                np.savez(samples, **net.arrays())
            Reference(onnx=True, profiles=net.profiles).run(
                folder / "reference", checkpoint=folder / "model", samples=samples
            )
            written[name] = folder
        return written[name]

    return of


def measured(folder, built, tmp_path):
    onnx_files.save(built, tmp_path / "built")
    return Validate().run(
        tmp_path / "out", compiled=tmp_path / "built", reference=folder / "reference", checkpoint=folder / "model"
    )


def test_the_tables_hold_enough_models():
    assert len(wrong_models.WRONG) >= 60
    assert len({(name, label) for name, label, _ in wrong_models.WRONG}) == len(wrong_models.WRONG)
    assert len(wrong_models.ODD) >= 40


@pytest.mark.parametrize(("name", "label", "end"), wrong_models.WRONG, ids=lambda each: each if len(each) < 40 else "")
def test_a_wrong_model_is_refused_and_the_case_is_named(name, label, end, originals, tmp_path):
    net = wrong_models.NETS[name]
    report = measured(originals(name, net), net.model(end), tmp_path)
    with pytest.raises(JudgementError) as caught:
        Validate().judge(report)
    assert any(word in str(caught.value) for word in ("sample ", "in 1", "in 2", "cases: ", "output ")), caught.value
    if label in wrong_models.LOSES_IN_INT8:
        with pytest.raises(JudgementError):
            Validate(precision="int8").judge(report)


@pytest.mark.parametrize("name", wrong_models.ODD)
def test_a_correct_model_passes_however_odd_it_is(name, originals, tmp_path):
    net = wrong_models.ODD[name]
    report = measured(originals(name, net), net.model(), tmp_path)
    Validate().judge(report)
    Validate(precision="int8", precision_share=Bound(at_least=0)).judge(report)
