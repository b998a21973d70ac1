"""The post-processing that a recipe names: what it is made of, and which outputs do not suit it."""

import graphs
import numpy as np
import pytest
from onnx import helper

from engine.errors import FieldError
from engine.kit.onnx.onnx_files import Input
from engine.kit.triton.answers import named
from engine.kit.triton.config import Signature
from engine.kit.triton.served import classify
from engine.recipe.postprocessing import Boxes, ToBoxes
from engine.tasks import Unfit

PREPROCESS = {"size": 64}
NAMES = ("cat", "dog", "bird")


def signature(*outputs):
    """Outputs, each of a name, a shape and, where it has other numbers than floats, a type."""
    specs = [Input(name, *(kind or ["float32"]), shape) for name, shape, *kind in outputs]
    return Signature({}, {spec.name: spec for spec in specs})


def graph(operator=None):
    nodes = [helper.make_node("Flatten", ["x"], ["flat" if operator else "y"])]
    nodes += [helper.make_node(operator, ["flat"], ["y"])] if operator else []
    return graphs.graph(nodes, [("x", graphs.FLOAT, ["batch", 3])], [("y", graphs.FLOAT, ["batch", 3])])


def make(postprocess, *outputs, names=NAMES, model=None, **preprocess):
    given = {**PREPROCESS, **preprocess}
    return named.make(postprocess, model or graph(), signature(*outputs), names=names, preprocess=given)


def boxes(*outputs, names=NAMES, **fields):
    return make(ToBoxes(boxes=Boxes(**fields)), *outputs, names=names)


@pytest.mark.parametrize(("name", "scores"), [("softmax", [0.665, 0.245, 0.09]), ("sigmoid", [0.881, 0.731, 0.5])])
def test_scores_of_classes(name, scores):
    answer = make(name, ("y", ("batch", 3)))
    served = classify.Work(None, answer.settings)({"logits": np.array([[1, 2, 0]], np.float32)})
    assert served["labels"].tolist() == [[b"dog", b"cat", b"bird"]]
    assert np.allclose(served["scores"], [scores], atol=1e-3)
    assert answer.names == {"y": "logits"}


def test_the_number_of_a_class_becomes_its_label():
    answer = make("argmax", ("y", ("batch",), "int64"))
    served = classify.Work(None, answer.settings)({"logits": np.array([2, 0])})
    assert served["labels"].tolist() == [[b"bird"], [b"cat"]]
    assert answer.outputs == ("labels",)


def test_argmax_of_pixels_is_a_mask():
    answer = make("argmax", ("y", ("batch", 3, 64, 64)))
    assert answer.work == "mask.py"
    assert answer.settings["labels"] == list(NAMES)


def test_boxes_have_the_settings_of_the_recipe():
    answer = boxes(("output0", ("batch", 7, "any")), threshold=0.1)
    assert answer.takes == ("own_boxes", "image_sizes")
    assert answer.outputs == ("labels", "scores", "boxes")
    assert answer.settings["size"] == [64, 64]
    assert answer.settings["threshold"] == 0.1
    assert boxes(("output0", ("batch", 7, "any")), names=()).settings["labels"] == ["0", "1", "2"]


SEPARATE = (("boxes", ("batch", 9, 4)), ("scores", ("batch", 9)), ("labels", ("batch", 9), "int64"))


def test_outputs_that_are_called_as_those_of_clients_get_other_names():
    answer = boxes(*SEPARATE, layout="separate")
    assert answer.names == {"boxes": "own_boxes", "scores": "own_scores", "labels": "own_labels"}


@pytest.mark.parametrize(
    ("make_it", "reason"),
    [
        (lambda: make("softmax", ("y", ("batch", 3)), model=graph("Softmax")), "ends in an activation"),
        (lambda: make("softmax", ("y", ("batch", 3, 4))), "is float32 of 3 axes, not a float of 2"),
        (lambda: make("softmax", ("y", ("batch", 4))), "tells 4 classes apart, and model.labels names 3"),
        (lambda: make("argmax", ("y", ("batch",), "int64"), names=()), "how many classes"),
        (lambda: make("argmax", ("y", ("batch", 3, 4, 4)), fit="letterbox"), "preprocess.fit: stretch"),
        (lambda: make(ToBoxes(boxes=Boxes()), ("y", ("batch", 7, 9)), size=None), "say preprocess.size"),
        (lambda: boxes(("y", ("batch", 4, "any"))), "tells no classes apart"),
        (lambda: boxes(("y", ("batch", 9, 8))), "tells 5 classes apart, and model.labels names 3"),
        (lambda: boxes(("y", ("batch", "n", "any")), names=()), "how many classes"),
        (lambda: boxes(*SEPARATE), "one output of three axes"),
        (lambda: boxes(*SEPARATE[:2], layout="separate"), r"made of boxes .*scores \[batch, 9\]"),
        (lambda: boxes(("b", (1, 9, 5)), ("s", (1, 9, 3)), layout="separate", outputs=["b", "s"]), "is made of"),
        (lambda: boxes(*SEPARATE, layout="separate", outputs=["boxes", "points"]), "made of boxes"),
    ],
)  # fmt: skip
def test_other_outputs_are_refused_with_the_reason(make_it, reason):
    with pytest.raises((Unfit, FieldError), match=reason):
        make_it()
