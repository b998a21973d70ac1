"""The code row of a key is the same on every version of Python, so that one store serves all of them."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OTHERS = [f"python3.{minor}" for minor in range(11, 16) if minor != sys.version_info.minor]
NO_DEPENDENCIES = """
import hashlib, json, sys, types
class State:
    def __init__(self, data=b""): self.state = hashlib.md5(data)
    def update(self, data): self.state.update(data)
    def hexdigest(self): return self.state.hexdigest()
xxhash = types.ModuleType("xxhash")
xxhash.xxh3_128, xxhash.xxh3_128_hexdigest = State, lambda data: hashlib.md5(data).hexdigest()
sys.modules["xxhash"] = xxhash
from engine.builder.code import closure
print(json.dumps({name: closure._read(name).digest for name in json.load(sys.stdin)}))
"""
"""A program that computes digests of code with nothing but Python itself: other versions have no packages here."""


def _modules():
    files = sorted((ROOT / "engine").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files]
    served = "engine.kit.triton.served"  # scripts that are copied, not imported
    return [name for name in names if not name.startswith(served)]


def _digests(python, names):
    command = [python, "-S", "-c", NO_DEPENDENCIES]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _runs(python):
    path = shutil.which(python)
    return path is not None and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.whole
@pytest.mark.parametrize("other", OTHERS)
def test_another_python_computes_the_same_digest_of_every_module(other):
    if not _runs(other):
        pytest.skip(f"there is no {other} on PATH")
    names = _modules()
    assert len(names) > 500
    here, there = _digests(sys.executable, names), _digests(other, names)
    assert {name for name in names if here[name] != there[name]} == set()


def test_the_digest_program_needs_no_package():
    """Otherwise the comparison with other versions of Python would fail for another reason."""
    [digest] = _digests(sys.executable, ["engine.kit.accuracy.agreement"]).values()
    assert len(digest) == hashlib.md5().digest_size * 2
