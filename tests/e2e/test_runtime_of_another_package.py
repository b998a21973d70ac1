"""A runtime of another package - the one that CONTRIBUTING shows - builds, validates, measures, and is refused."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import models
import pytest
from quick_program import copied
from tiny_project import OF_ONNX

from engine.testing import install

GUIDE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text().partition("## Add a runtime\n")[2]
CODE = GUIDE.partition("```python\n")[2].partition("```")[0]
"""The runtime that CONTRIBUTING shows: it must do all that is said of it."""
RECIPE = f"""\
name: m
{OF_ONNX}target: {{runtime: onnx-reference}}
profiles: [{{batch: [1, 1, 4], sequence: [1, 8, 32]}}]
validate: {{samples: samples.jsonl}}
bench: {{shapes: [{{batch: 1, sequence: 4}}], against: [{{runtime: onnxruntime}}]}}
"""
OURS = RECIPE.replace("onnx-reference", "onnxruntime").replace("name: m", "name: n")


@pytest.fixture
def site(empty):
    """The folder of the other package."""
    return empty.folder / "site"


@pytest.fixture
def project(empty, site):
    install(site, "recipe.runtimes", "onnx-reference", "onnx_reference:OnnxReference")
    (site / "onnx_reference.py").write_text(CODE)
    empty.environment["PYTHONPATH"] = str(site)
    models.classifier_with_tokenizer(empty.folder / "model")
    (empty.folder / "samples.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in ("a good film", "the plot was bad"))
    )
    (empty.folder / "r.yaml").write_text(RECIPE)
    return empty


@pytest.mark.whole("the refusals below always run; tests/tasks has a task of another package")
def test_it_builds_validates_measures_and_packages_and_an_edit_of_it_rebuilds_just_its_users(project, site):
    project.environment["PYTHONPATH"] += f":{copied()}"
    (project.folder / "ours.yaml").write_text(OURS)
    project("build", "r.yaml", "ours.yaml", expect=0)
    variant = project.shown("r.yaml")
    assert {row["runtime"] for row in variant["bench"]} == {"onnx-reference-fp32", "onnxruntime-fp32"}
    assert variant["validation"]["cosine"]["worst"] > 0.9999
    package = project.folder / "build" / "m" / "m"
    assert {"model.onnx", "tokenizer.json", "requirements.txt"} <= {path.name for path in package.iterdir()}
    assert not (package / "config.pbtxt").exists()

    file = site / "onnx_reference.py"
    file.write_text(file.read_text() + "\n# a remark\n")
    assert set(project.states("r.yaml").values()) == {"cached"}
    file.write_text(file.read_text() + "\nEDITED = 1\n")
    assert {job for job, state in project.states("r.yaml").items() if state == "built"} == {
        "validate",
        "bench",
        "package",
    }
    assert set(project.states("ours.yaml").values()) == {"cached"}


KNOBS = GUIDE.split("```python\n")[2].partition("```")[0]
"""The knobs that CONTRIBUTING shows."""
SPACE = """\
from pathlib import Path
from engine.recipe.load import load
from engine.runtimes import search_space
[one] = load(Path("r.yaml"))
for knob in search_space.of_recipe(one.recipe):
    if "onnx-reference" in str(knob):
        print(knob.field, list(knob.values), dict(knob.when))
"""


def test_its_knobs_are_in_the_search_space_under_its_name(project, site):
    brought = CODE.replace("import Runner", "import Knob, Runner").replace(
        "    def tools", f"{KNOBS}\n    def tools", 1
    )
    (site / "onnx_reference.py").write_text(brought)
    done = subprocess.run(
        [sys.executable, "-c", SPACE], cwd=project.folder, env=os.environ | project.environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    runtime, *lines = done.stdout.splitlines()
    assert runtime == "target.runtime ['onnx-reference', 'onnxruntime', 'openvino'] {}"
    here = "'target.runtime': ('onnx-reference',)"
    assert lines == [
        f"precision ['fp32'] {{{here}}}",
        f"runtimes.onnx-reference.passes [None, 2] {{{here}, 'precision': ('fp32',)}}",
    ]


BY_LENGTHS = CODE.replace(
    "        def run(inputs):\n",
    """        def run(inputs):
            mask = inputs["attention_mask"]
            lengths = mask.sum(1, keepdims=True)
            if not lengths.all() or (mask != (range(mask.shape[1]) < lengths)).any():
                raise StepError("a mask is no length")
""",
)
"""A runtime that computes with the length of each text, as CTranslate2 does, and knows no other masks."""


@pytest.mark.whole("the refusals below always run; tests/tasks has a task of another package")
def test_a_runtime_that_takes_lengths_is_validated_on_right_padded_texts_and_the_report_says_so(project, site):
    (site / "onnx_reference.py").write_text(BY_LENGTHS)
    done = project("build", "r.yaml", "--to", "validate", expect=1)
    assert "a mask is no length" in done.stderr
    declared = BY_LENGTHS.replace("    rival_of", "    takes_lengths: ClassVar[bool] = True\n    rival_of")
    (site / "onnx_reference.py").write_text(declared)
    done = project("build", "r.yaml", "--to", "validate", expect=0)
    note = "not compared, as the runtime takes lengths of texts and no masks: "
    [line] = re.findall(rf"note: {note}(.*)", done.stdout)
    assert {"left-padded", "holed"} <= set(re.findall(r"[a-z-]+", line))
    variant = project.shown("r.yaml")
    assert "right-padded" in variant["validation"]["kinds"]
    assert not {"left-padded", "holed", "blank-row"} & set(variant["validation"]["kinds"])


REFUSED = {
    "a precision": ("precision: int8\n", "no cpu is built for in int8"),
    "a GPU": ("target: {runtime: onnx-reference, device: T4}\n", "onnx-reference does not run on the T4"),
    "a provider": ("target: {runtime: onnx-reference, provider: cuda}\n", "`provider` is onnxruntime's"),
    "options that are another's": ("tensorrt: {optimization_level: 3}\n", "a runtime that this recipe does not use"),
    "options of its own": ("runtimes: {onnx-reference: {fast: true}}\n", "takes no options under `runtimes`"),
    "options of a runtime that is not used": ("runtimes: {other: {}}\n", "a runtime that this recipe does not use"),
    "a Triton image": ('package: {triton: {image: "24.10"}}\n', "no image of Triton loads what onnx-reference runs"),
    "a server": ("bench: {via: [triton-grpc]}\n", "measuring through a server what Triton has no backend for"),
    "text": ("generate: {max_new_tokens: 3}\n", "generating text with onnx-reference"),
    "a rival's precision": (
        "bench: {against: [{runtime: onnx-reference, precision: int8}]}\n",
        "a rival in this precision",
    ),
}


def test_what_it_cannot_do_is_refused_at_its_place(project):
    """One command checks the recipes of all cases: each error begins with the file and the line."""
    expected = {}
    for case, (line, why) in REFUSED.items():
        field = line.partition(":")[0]
        kept = [each for each in RECIPE.splitlines(keepends=True) if not each.startswith(f"{field}:")]
        file = f"{case.replace(' ', '-')}.yaml"
        (project.folder / file).write_text("".join([*kept, line]))
        expected[f"{file}:{len(kept) + 1}"] = why
    _, *errors = re.split(
        r"^error: ",
        project("check", *(place.partition(":")[0] for place in expected), expect=2).stderr,
        flags=re.MULTILINE,
    )
    error_at = {":".join(error.split(":", 2)[:2]): error for error in errors[:-1]}  # the last one counts them
    assert error_at.keys() == expected.keys()
    for place, why in expected.items():
        assert why in error_at[place]


def test_what_has_no_triton_repository_is_not_served(project):
    done = project("serve", "r.yaml", expect=2)
    assert "no Triton repository: Triton has no backend for it" in done.stderr


def test_without_its_package_the_recipe_says_which_runtimes_there_are(project):
    del project.environment["PYTHONPATH"]
    done = project("check", "r.yaml", expect=2)
    assert "r.yaml:3:" in done.stderr
    assert "`target.runtime` cannot be the text 'onnx-reference'" in done.stderr


def test_one_that_cannot_be_loaded_names_its_package(project, site):
    (site / "onnx_reference.py").write_text("import nothing_of_this_name")
    done = project("check", "r.yaml", expect=1)
    assert "the runtime 'onnx-reference' of onnx-reference 1.0 cannot be loaded" in done.stderr


OPTIONS = """
from pydantic import BaseModel, ConfigDict


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    verbose: int = 0


OnnxReference.options_model = Options
"""


@pytest.mark.whole
def test_its_own_options_are_validated_and_count(project, site):
    file = site / "onnx_reference.py"
    file.write_text(CODE + OPTIONS)
    project("build", "r.yaml", "--to", "validate", expect=0)
    (project.folder / "r.yaml").write_text(RECIPE + "runtimes: {onnx-reference: {verbose: 0}}\n")
    assert project.why("r.yaml")["validate"]["state"] == "cached"  # what is said is what was meant
    (project.folder / "r.yaml").write_text(RECIPE + "runtimes: {onnx-reference: {verbose: 1}}\n")
    [change] = project.why("r.yaml")["validate"]["changes"][:1]
    assert change["row"] == "options.execution.options.verbose"
    (project.folder / "r.yaml").write_text(RECIPE + "runtimes: {onnx-reference: {loud: 1}}\n")
    done = project("check", "r.yaml", expect=2)
    assert "r.yaml:7:" in done.stderr
    assert "loud" in done.stderr
