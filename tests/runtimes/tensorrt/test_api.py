"""The build of TensorRT is read from the library where pip's version lacks it."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.runtimes.tensorrt import api

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = {"Major": 10, "Minor": 0, "Patch": 1, "Build": 6}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library with TensorRT's name and the functions that tell its version, which is 10.0.1.6."""
    folder = tmp_path_factory.mktemp("library")
    code, place = folder / "version.c", folder / "libnvinfer.so.10"
    code.write_text("".join(f"int getInferLib{part}Version(void) {{ return {n}; }}\n" for part, n in NUMBERS.items()))
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libnvinfer.so.10", "-o", place, code], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    return place


def test_the_build_is_that_of_the_loaded_library_of_the_same_version(library):
    whole = {"10.0.1": "10.0.1.6", "10.0.1.5": "10.0.1.5", "10.7.0": "10.7.0", "11.0": "11.0"}
    code = (
        f"import ctypes; ctypes.CDLL({str(library)!r})\n"
        f"from engine.runtimes.tensorrt import api\nprint({{each: api.with_build(each) for each in {list(whole)}}})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(whole)


def test_without_a_library_the_version_stays_as_it_is():
    assert api.with_build("10.0.1") == "10.0.1"
    assert api.with_build("") == ""
