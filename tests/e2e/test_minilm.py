"""The recipe that the README begins with, from real weights to a package."""

import json

import pytest

RECIPE = "recipes/minilm_cpu.yaml"


@pytest.mark.slow
@pytest.mark.whole
def test_the_embedded_default_becomes_a_measured_package_and_then_nothing_is_left_to_do(shipped):
    first = shipped("build", RECIPE, expect=0)
    [shown] = json.loads(shipped("show", RECIPE, "--json", expect=0).stdout)
    runtimes = ["onnxruntime-int8", "pytorch-fp32", "onnxruntime-fp32"]
    assert [(row["shape"]["sequence"], row["runtime"]) for row in shown["bench"]] == [
        (length, runtime) for length in (16, 128) for runtime in runtimes
    ]
    for row in shown["bench"]:
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
        assert f"{row['p50_ms']:.3f}" in first.stdout
    # What the recipe is for: a quarter of the size, and as good as embeddings in 8 bits get.
    sizes = {step["job"]: step["bytes"] for step in shown["steps"]}
    assert sizes["quantize"] < 0.3 * sizes["export"]
    assert shown["validation"]["cosine"]["mean"] > 0.985
    assert f"{shown['validation']['cosine']['mean']:.4f}" in first.stdout
    assert "minilm -> build/minilm" in first.stdout
    package = shipped.folder / "build" / "minilm"
    around = [f"minilm_{part}" for part in ("text", "tokenizer")]
    assert sorted(entry.name for entry in package.iterdir() if entry.is_dir()) == ["minilm", *around]
    assert {entry.name for entry in package.iterdir() if entry.is_file()} >= {"NOTICE", "sbom.cdx.json"}
    second = shipped("build", RECIPE, expect=0)
    assert second.stdout == first.stdout
    assert [line.split()[0] for line in second.stderr.splitlines()[:-1]] == ["cached"] * 9
    assert not shipped.imports("build", RECIPE) & {
        "pydantic",
        "networkx",
        "torch",
        "onnx",
        "onnxruntime",
        "numpy",
        "yaml",
    }
