"""Packages whose tokenizer pads texts to the sizes in the profiles."""

import json

import models
import pytest

from engine.errors import StepError
from engine.kit.triton import repository
from engine.kit.triton.serving import Serving
from engine.steps.export import Export


def write(folder, out, **options):
    options = {"padding": "buckets", "task": "text-classification", "lengths": {"sequence": (8, 16)}, **options}
    serving = Serving(model_name="m", ensemble="m_text", largest={"batch": 8, "sequence": 16}, **options)
    repository.write(out, serving, validated=folder, checkpoint=folder)


def source(folder, **options):
    models.onnx_text(folder / "model.onnx", **options)
    models.save_tokenizer(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "buckets"),
    [
        ({}, [8, 16]),
        ({"layout": "fused"}, [8, 16]),
        ({"lengths": {"sequence": (8, 1000, 2000)}}, [8, 16]),  # texts are cut at 16 tokens
        ({"padding": "none"}, None),
        ({"padding": "auto"}, None),
    ],
)
def test_the_tokenizer_knows_the_lengths_to_which_it_pads(options, buckets, tmp_path):
    write(source(tmp_path / "model"), tmp_path / "p", **options)
    folder = "m_text/1/m_tokenizer" if "layout" in options else "m_tokenizer/1"
    assert json.loads((tmp_path / "p" / folder / "settings.json").read_text()).get("buckets") == buckets


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ({"mask": False}, {}, "the model has no attention_mask"),
        ({"sequence": 16}, {}, "the model takes texts of 16 tokens only"),
        ({}, {"lengths": {"batch": (4,)}}, "no profile names sizes of the axis sequence"),
    ],
)
def test_what_cannot_be_padded_is_refused(model, options, says, tmp_path):
    with pytest.raises(StepError, match=r"package\.triton\.padding: buckets is not possible") as error:
        write(source(tmp_path / "model", **model), tmp_path / "p", **options)
    assert says in error.value.what


def test_padding_that_clients_would_see_is_refused(tmp_path):
    checkpoint = models.checkpoint(tmp_path / "model", "bert", task="token-classification")
    Export().run(tmp_path / "exported", checkpoint=checkpoint)
    serving = Serving(model_name="m", ensemble="m_text", padding="buckets", lengths={"sequence": (8, 16)})
    with pytest.raises(StepError, match="it would lengthen"):
        repository.write(tmp_path / "p", serving, validated=tmp_path / "exported", checkpoint=checkpoint)
