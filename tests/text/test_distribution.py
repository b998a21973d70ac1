"""The package's metadata for pip: its name, the versions that its extras allow, and the tested versions."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from engine.machine import tools
from engine.text import distribution

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: [Requirement(each) for each in listed] for name, listed in PROJECT["optional-dependencies"].items()} | {
    "": [Requirement(each) for each in PROJECT["dependencies"]]
}
REQUIREMENTS = [
    pytest.param(each, id=f"{extra}:{each.name}")
    for extra, listed in EXTRAS.items()
    for each in listed
    if canonicalize_name(each.name) != distribution.NAME
]
UNTRIED = {
    "tensorrt": "nobody has built with it yet, and the driver decides which it can be",
    "cuda-bindings": "the driver decides: 12 for the extra `tensorrt`, 13 beside PyPI's own torch for Linux",
}
PINNED = {"tensorrt": "an engine is loaded by the version that built it: that of the shipped recipes' Triton image"}
TOOLS = "dev"
"""The extra for developers of the project. Its packages may have any version."""


@pytest.fixture(scope="module")
def constraints():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    assert [name for name, _ in pairs] == sorted({canonicalize_name(name) for name, _ in pairs})
    return {name: Version(version) for name, version in pairs}


def test_the_project_and_its_hints_say_one_name():
    assert PROJECT["name"] == distribution.NAME
    assert distribution.install("cpu") == "pip install 'recipe-build[cpu]'"


def test_what_an_extra_takes_of_another_is_there():
    own = [each for listed in EXTRAS.values() for each in listed if each.name == distribution.NAME]
    assert own
    assert {extra for each in own for extra in each.extras} <= EXTRAS.keys()


def test_every_extra_that_a_hint_names_is_there():
    named = {
        extra
        for path in (ROOT / "engine").rglob("*.py")
        for extra in re.findall(r"distribution\.install\(['\"](\w+)['\"]\)", path.read_text())
    }
    assert {"cpu", "onnx", "demo", "timm"} <= named
    assert named <= EXTRAS.keys()


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_the_tested_version_is_within_the_range(requirement, constraints):
    if requirement.name in UNTRIED:
        assert requirement.name not in constraints, "it is tested now: take it out of UNTRIED"
        return
    assert constraints[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_nightly_script_tries_every_extra_with_tests_that_exist():
    script = (ROOT / ".ci" / "nightly").read_text()
    rows = re.findall(r'^  "([\w,-]+) (tests.*)"$', script, re.MULTILINE)
    extras = {extra for row, _ in rows for extra in row.split(",")}
    brought = {extra for each in EXTRAS["cpu"] + EXTRAS["dev"] + EXTRAS["dev-cluster"] for extra in each.extras}
    assert EXTRAS.keys() - extras - brought == {"", "gpu", "tensorrt", "real-files"}
    assert [path for _, paths in rows for path in paths.split() if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("library", tools.NEWEST)
def test_the_newest_version_that_was_tried_is_within_the_range_and_not_older_than_the_tested_one(library, constraints):
    name = canonicalize_name(library.replace("tensorrt_rtx", "tensorrt-rtx-cu12"))
    ranges = [each.specifier for listed in EXTRAS.values() for each in listed if canonicalize_name(each.name) == name]
    assert ranges
    assert all(tools.NEWEST[library] in each for each in ranges)
    assert Version(tools.NEWEST[library]) >= constraints[name]


def test_the_constraints_fit_pypis_torch_too(constraints):
    """torch 2.13.0 for Linux needs cuda-bindings >=13.0.3,<14 and packages of CUDA 13; its CPU build needs none."""
    assert "torch" in constraints
    assert not [name for name in constraints if name.startswith(("cuda-bindings", "cuda-toolkit", "nvidia-cu"))]


def test_no_page_installs_tensorrt_for_cuda_12_beside_the_tested_torch():
    """The extra `tensorrt` and PyPI's torch of the constraints cannot be installed together."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    lines = re.findall(r"pip install [^`\n]*\[[^]`\n]*\btensorrt\b[^]`\n]*\][^`\n]*", text)
    assert lines
    assert not [line for line in lines if "constraints" in line]


@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - {TOOLS}))
def test_an_extra_pins_nothing_and_says_from_where_on(extra):
    for requirement in EXTRAS[extra]:
        if requirement.name != distribution.NAME:
            operators = {each.operator for each in requirement.specifier}
            if requirement.name in PINNED:
                assert operators == {"=="}
                continue
            assert ">=" in operators, str(requirement)
            assert not operators & {"==", "==="}, str(requirement)


def test_no_file_asks_pip_for_the_other_project():
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "engine").rglob("*.py")]
    assert len(files) > 100
    assert [str(path) for path in files if re.search(r"\brecipe\[", path.read_text())] == []
