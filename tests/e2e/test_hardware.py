"""Builds for a GPU that is not here, and for a model that cannot be fetched."""

import pytest


@pytest.mark.slow
@pytest.mark.whole
def test_a_t4_recipe_is_built_up_to_the_engine_and_waits(shipped):
    events = shipped.events("recipes/minilm_t4_packaged.yaml", expect=3)
    states = {event["job"]: event["state"] for event in events if event["event"] == "end"}
    assert states == {
        "fetch": "built", "export": "built", "reference": "built", "shape-infer": "built", "quantize": "built",
        "validate-onnx": "built", "trt-prepare": "built", "trt-build": "waiting", "validate": "skipped",
        "bench": "skipped", "package": "skipped",
    }  # fmt: skip
    [waiting] = [event for event in events if event.get("state") == "waiting" and event["event"] == "end"]
    assert waiting["for"] == "T4 (sm_75) with tensorrt 10.11.0.33"
    again = shipped("build", "recipes/minilm_t4_packaged.yaml", expect=3)
    assert "waits for: T4 (sm_75) with tensorrt 10.11.0.33" in again.stderr
    assert "with this cache" in again.stderr
    assert again.stderr.count("cached") == 7
    assert shipped("build", "recipes/minilm_t4_packaged.yaml", "--allow-waiting", expect=0)
    assert not (shipped.folder / "build").exists()


def test_a_model_that_cannot_be_fetched_is_one_clear_error(shipped):
    shipped.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
    shipped.environment.pop("HF_HUB_OFFLINE", None)
    done = shipped("build", "recipes/minilm_t4.yaml", expect=1)
    assert done.stderr.count("failed") <= 2
    assert "philschmid/MiniLM-L6-H384-uncased-sst2" in done.stderr
    assert "hint:" in done.stderr
    assert list((shipped.folder / "cache" / "artifacts").iterdir()) == []
    assert list((shipped.folder / "cache" / "staging").iterdir()) == []
