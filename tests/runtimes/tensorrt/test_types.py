"""The calls to TensorRT against the types of TensorRT 10, and the fake `tensorrt` against its names."""

import enum
import subprocess
import sys
from pathlib import Path

import pytest
import tensorrt_stubs

ROOT = Path(__file__).parents[3]
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "engine/runtimes/tensorrt").rglob("*.py"))


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    return tensorrt_stubs.stubs(tmp_path_factory.mktemp("stubs"))


def complaints(stubs, *files):
    """Return what mypy says of our files with the stubs in sight; the stubs themselves are not strict."""
    words = ["-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", str(stubs / "cache"), *files]
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False, env={"MYPYPATH": str(stubs)}
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(tuple(files)) and ": error:" in line]


@pytest.mark.slow
@pytest.mark.whole("the fake refuses what TensorRT 10 lacks")
def test_the_native_path_has_the_types_of_tensorrt_10(stubs):
    assert {"builder.py", "runner.py", "bindings.py", "compilation.py"} <= {Path(name).name for name in FILES}
    assert complaints(stubs, *FILES) == []


@pytest.mark.slow
@pytest.mark.whole("the fake refuses what TensorRT 10 lacks")
def test_a_call_that_tensorrt_10_does_not_have_is_found(stubs, tmp_path):
    wrong = tmp_path / "wrong.py"
    text = (
        "from engine.runtimes.tensorrt.api import trt\n"
        "def build(builder: trt.Builder) -> None:\n"
        "    builder.build_cuda_engine()\n"
        "    builder.create_builder_config().set_flag('FP16')\n"
    )
    wrong.write_text(text)
    errors = complaints(stubs, str(wrong))
    assert len(errors) == 2, errors
    assert 'no attribute "build_cuda_engine"' in errors[0]


@pytest.mark.whole("the stubs are downloaded; the fake refuses every attribute that it lacks")
def test_the_fake_has_no_name_that_tensorrt_10_lacks(stubs, fake_tensorrt):
    text = (stubs / "tensorrt_bindings" / "tensorrt.pyi").read_text()
    known = tensorrt_stubs.members(text)
    public = {name: value for name, value in vars(fake_tensorrt).items() if isinstance(value, type)}
    assert len(public) > 20
    for name, faked in public.items():
        own = vars(faked) if not issubclass(faked, enum.Enum) else faked.__members__
        assert {member for member in own if not member.startswith("_")} <= known[name], name


def test_the_fake_refuses_an_attribute_that_tensorrt_10_lacks(fake_tensorrt):
    config = fake_tensorrt.Builder(fake_tensorrt.Logger()).create_builder_config()
    with pytest.raises(AttributeError):
        config.num_compute_capabilities = 1
    with pytest.raises(AttributeError):
        _ = fake_tensorrt.BuilderFlag.NO_SUCH_FLAG
    with pytest.raises(AttributeError):
        _ = fake_tensorrt.ComputeCapability
