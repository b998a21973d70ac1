"""Versions of installed distributions, and the distribution behind an import."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.machine import tools

ASK = "from engine.machine import tools; print(tools.build('onnxruntime').value, tools.version_of('onnxruntime'))"


@pytest.fixture
def site(tmp_path):
    """Make a folder of installed distributions, and return the program's answer about onnxruntime there."""

    def installed(*distributions, own=None):
        for name, version in distributions:
            info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        capi = tmp_path / "onnxruntime" / "capi"
        capi.mkdir(parents=True)
        (capi.parent / "__init__.py").write_text("raise ImportError('it is not to be imported')")
        if own is not None:
            (capi / "build_and_package_info.py").write_text(f"package_name = '{own}'\n")
        hidden = "import sys; sys.path = [sys.argv[1], *(p for p in sys.path if 'site-packages' not in p)]; "
        home = Path(__file__).parents[2]
        command = [sys.executable, "-c", f"{hidden}sys.path.append(sys.argv[2]); {ASK}", tmp_path, home]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    return installed


def test_the_only_build_that_is_installed_is_the_build(site):
    assert site(("onnxruntime-gpu", "1.2")) == ["onnxruntime-gpu", "1.2"]


@pytest.mark.parametrize("own", ["onnxruntime", "onnxruntime-gpu"])
def test_of_two_builds_it_is_the_one_whose_files_are_there(site, own):
    versions = {"onnxruntime": "1.1", "onnxruntime-gpu": "1.2"}
    assert site(*versions.items(), own=own) == [own, versions[own]]


def test_two_builds_whose_files_say_nothing_are_taken_for_the_first(site):
    assert site(("onnxruntime", "1.1"), ("onnxruntime-gpu", "1.2")) == ["onnxruntime", "1.1"]


@pytest.fixture
def installed(monkeypatch):
    """Let the versions of installed libraries be what a test writes; the others are not installed."""
    versions = {}
    monkeypatch.setattr(tools, "version_of", lambda name: versions.get(name, tools.MISSING))
    monkeypatch.setattr(tools, "NEWEST", {"torch": "2.13.0", "transformers": "5.24.0"})
    return versions


def test_a_library_that_is_newer_than_the_last_one_tried_is_one_sentence(installed):
    installed |= {"transformers": "5.25.0", "torch": "2.13.0"}
    sentence = "transformers 5.25.0 is newer than 5.24.0, the last version that was tried"
    assert tools.newer(["torch", "transformers"]) == [sentence]
    assert tools.newer(["torch", "scipy"]) == []
    installed["torch"] = "2.13.1+cu130"
    assert tools.newer(["torch"])[0].startswith("torch 2.13.1 is newer"), "a build is told without its label"


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.12.1", "2.9.0", tools.MISSING])
def test_a_build_of_the_version_that_was_tried_and_older_ones_are_no_news(installed, version):
    installed["torch"] = version
    assert tools.newer(["torch"]) == []
