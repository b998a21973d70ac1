"""Real engines on a machine without a GPU: what needs the device waits, another device costs only another engine."""

import json

import pytest

RECIPE = "recipes/minilm_rtx.yaml"
BEFORE = {"fetch", "export", "reference", "shape-infer", "quantize", "validate-onnx"}


@pytest.mark.slow
def test_an_rtx_engine_is_built_here_and_another_device_costs_only_another_engine(shipped):
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
    assert all(engine["bytes"] > 20_000_000 and len(engine["key"]) == 32 for engine in passports)
