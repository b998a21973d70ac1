"""A failed build prints no figures of another build, and `show` names the build that its figures are of."""

import json

import models
import pytest
from program import Program
from tiny_project import OF_ONNX, SAMPLES

RECIPE = (
    f"name: m\n{OF_ONNX}precision: fp32\nprofiles: [{{batch: [1, 1, 4], sequence: [1, 16, 32]}}]\n"
    "validate: {samples: samples.jsonl, cosine: {at_least: 0.9999999}}\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failed-builds")
    (folder / "pyproject.toml").write_text("")
    models.classifier_with_tokenizer(folder / "model")
    (folder / "samples.jsonl").write_text(SAMPLES)
    (folder / "r.yaml").write_text(RECIPE)
    program = Program(folder)
    assert "m: fp32 for cpu" in program("build", "r.yaml", expect=0).stdout
    return program


ON_T4 = ("target.device=T4", "target.runtime=tensorrt", "precision=fp16", "validate.cosine=0.5")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["--to", "quantize", "--set", "precision=int8"], 0, "ends with quantize"),
        ([word for each in ON_T4 for word in ("--set", each)], 3, "waits for T4"),
    ],
)
@pytest.mark.whole("tests/builder/test_job_end.py ends builds of toy steps")
def test_overrides_that_end_early_or_wait_leave_the_results(built, words, code, why):
    before = built("show", "r.yaml", "--json", expect=0).stdout
    built("build", "r.yaml", "-q", *words, expect=code)
    title, about, *_ = built("show", "r.yaml", expect=0).stdout.splitlines()
    assert title.startswith("m: fp32 for cpu")
    assert why in about
    [was], [shown] = json.loads(before), json.loads(built("show", "r.yaml", "--json", expect=0).stdout)
    assert (shown["target"], shown["size"], shown["steps"]) == (was["target"], was["size"], was["steps"])
    assert "up to date" in built("list", expect=0).stdout
    built("build", "r.yaml", expect=0)


@pytest.mark.whole("tests/builder/test_job_end.py ends builds of toy steps")
def test_overrides_that_fail_leave_the_package_and_an_edit_that_fails_moves_it(built):
    package = built.folder / "build" / "m"
    what_if = built("build", "r.yaml", "--set", "precision=int8", "-q", expect=4)
    assert what_if.stdout == ""
    assert package.is_dir()
    assert "the last build failed in validate" in built("show", "r.yaml", expect=0).stdout
    assert "up to date" in built("build", "r.yaml", expect=0).stderr
    assert "the last build" not in built("show", "r.yaml", expect=0).stdout

    (built.folder / "r.yaml").write_text(RECIPE.replace("fp32", "int8"))
    failed = built("build", "r.yaml", expect=4)
    assert failed.stdout == ""
    assert failed.stderr.splitlines()[-1].startswith("failed in ")
    assert not package.exists()

    title, about, *_ = built("show", "r.yaml", expect=0).stdout.splitlines()
    assert title.startswith("m: fp32 for cpu")
    assert about.startswith("results of the last successful build, fp32, of 20")
    assert "; the last build failed in validate: The built model is too far from the original" in about
    shown = built.shown("r.yaml")
    assert shown["precision"] == "fp32"
    assert shown["warnings"][0] == about
    for words in (("show", "r.yaml", "--markdown"), ("show", "r.yaml", "--csv"), ("report", "r.yaml", "-o", "-")):
        assert "results of the last successful build, fp32" in built(*words, expect=0).stdout, words
