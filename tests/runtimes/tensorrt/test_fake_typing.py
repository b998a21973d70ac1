"""What a strongly typed network refuses: the fake `tensorrt` and the real TensorRT-RTX give the same verdicts."""

import re

import engines
import graphs
import onnx
import pytest
import typed_graphs
from typed_graphs import CASES, F16, F32

from engine.errors import StepError
from engine.runtimes.tensorrt import api as trt_api
from engine.runtimes.tensorrt import builder as trt_builder


def build(model, folder, *, sms=()):
    """Build an engine through the engine's own builder; return its error, or ""."""
    trt_api.use("tensorrt-rtx" if sms else "tensorrt")
    graphs.write(folder, model)
    try:
        trt_builder.build(engines.order(folder, sms=sms))
    except StepError as error:
        return f"{error.what} {' '.join(error.facts)}"
    return ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_fake_refuses_what_is_refused(case, fake_tensorrt, tmp_path, monkeypatch):
    monkeypatch.setattr(fake_tensorrt._machine, "gpu", lambda: {"name": "a GPU", "sm": case.sm})
    error = build(case.model, tmp_path / "model")
    assert bool(error) == bool(case.refused), error
    assert case.refused in error


@pytest.mark.sample(16)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tensorrt_rtx_gives_the_same_verdict(case, tmp_path):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    error = build(case.model, tmp_path / "model", sms=(case.sm,))
    assert bool(error) == bool(case.refused), error


def test_every_rule_has_a_source_and_refuses_a_case(fake_tensorrt):
    typed, nodes = fake_tensorrt._network._typed, fake_tensorrt._network._nodes
    speaking = {
        next(filter(None, ((rule(node) and rule) for rule in typed.RULES)), None)
        for case in CASES
        for node in nodes.read(case.model)
    }
    assert all(re.search("RTX|parser|operators", source) for source in typed.RULES.values())
    untried = {rule.__name__ for rule in typed.RULES} - {rule.__name__ for rule in speaking if rule}
    assert untried == {"scale_is_float"}


def test_a_type_that_the_file_only_declares_does_not_count(fake_tensorrt, tmp_path):
    model = typed_graphs.graph(
        [
            onnx.helper.make_node("Cast", ["a"], ["b"], to=F16),
            onnx.helper.make_node("Add", ["b", "b"], ["c"]),
            onnx.helper.make_node("Add", ["a", "c"], ["y"]),
        ],
        [("a", F32, (4,))],
        (F32, (4,)),
    )
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("c", F32, (4,)))
    assert "must have same input types" in build(model, tmp_path / "model")
