"""The forms of the int8 graph that `benchmarks/dynamic_int8.py` compares: other operators, the same answers."""

import sys
from collections import Counter
from pathlib import Path

import graphs
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))

import dynamic_int8

from engine.kit.accuracy import equivalence
from engine.kit.onnx import onnx_files
from engine.runtimes.onnxruntime import session as ort
from engine.steps.fuse import Fuse

OPERATORS = {"attention": "QAttention", "divided": "Div", "residual": "SkipLayerNormalization"}
"""The operator that only this form has, by a word of the form's name."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folders of the int8 models: that of `quantize`, and one for each form, of the same fused BERT."""
    folder = tmp_path_factory.mktemp("forms")
    Fuse().run(folder / "fused", shaped=graphs.tiny("bert"))
    for name, replaced in {"ours": [], **dynamic_int8.FORMS}.items():
        dynamic_int8.quantized(folder / "fused", folder / name, replaced)
    return folder


def operators(directory):
    return Counter(node.op_type for node in onnx_files.nodes(onnx_files.load_graph(directory)))


@pytest.mark.whole("tests of the benchmarks are about the figures, not the program")
@pytest.mark.parametrize("name", dynamic_int8.FORMS)
def test_each_form_has_other_operators_and_the_same_answers(built, name):
    (operator,) = (only for word, only in OPERATORS.items() if word in name)
    assert operators(built / "ours")[operator] == 0
    assert operators(built / name)[operator] > 0
    ours, form = (ort.session(built / each, threads=1) for each in ("ours", name))
    for kind, inputs in equivalence.trials(onnx_files.load_graph(built / "ours")):
        one, two = (next(iter(ort.run(each, inputs).values())).astype(float).ravel() for each in (ours, form))
        assert one @ two / np.linalg.norm(one) / np.linalg.norm(two) > 0.9995, kind
