"""The registry of steps: it loads the modules that steps run only when they are used."""

import subprocess
import sys

SHAPES = "engine.kit.onnx.shapes"


def lines(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_what_only_a_run_needs_waits_until_it_is_used():
    code = (
        "import sys; from engine.builder import registry; registry.steps()\n"
        f"module = sys.modules['{SHAPES}']\n"
        "print(type(module).__name__)\n"
        "print(bool(module.skeleton), type(module).__name__)"
    )
    assert lines(code) == ["_LazyModule", "True", "module"]


def test_a_worker_has_read_all_code_of_a_step_before_it_runs():
    code = f"import sys, engine.steps.shape_infer; print(type(sys.modules['{SHAPES}']).__name__)"
    assert lines(code) == ["module"]


def test_nothing_waits_once_the_steps_are_there():
    code = (
        "import sys; from engine.builder import registry; registry.steps()\n"
        "import engine.client.address; print(type(sys.modules['engine.client.address']).__name__)"
    )
    assert lines(code) == ["module"]
