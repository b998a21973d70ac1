"""Polygraphy's TensorRT half, as far as it goes without a GPU: a network of outputs, and an engine of it."""

import subprocess
import sys
from pathlib import Path

import pytest
import typed_graphs

FILES = Path(typed_graphs.__file__).parent / "modelopt"
BUILD = """
import sys
from polygraphy import config
config.USE_TENSORRT_RTX = True
from engine.runtimes.tensorrt import layers
from polygraphy.backend.tensorrt_rtx import CreateConfigRTX
from polygraphy.backend.trt import EngineBytesFromNetwork, Profile
network = layers.network(sys.argv[1])
built = network()[1]
outputs = {built.get_output(number).name: built.get_output(number).dtype.name for number in range(built.num_outputs)}
print(sorted(set(outputs) & {"h0", "h1", "h2", "h3", "h4", "y"}), sorted(set(outputs.values())))
shape = (2, 16, 32)
config = CreateConfigRTX(compute_capabilities=[(8, 9)], profiles=[Profile().add("x", shape, shape, shape)])
print(len(bytes(EngineBytesFromNetwork(network, config)())))
"""
"""Runs in a process of its own, because Polygraphy chooses between TensorRT and TensorRT-RTX once."""


def test_every_tensor_of_the_strongly_typed_network_is_an_output_and_an_engine_is_built():
    pytest.importorskip("polygraphy", reason="the extra `polygraphy` is not installed")
    pytest.importorskip("tensorrt_rtx", reason="the extra `rtx` is not installed: Linux on x86_64 has it")
    command = [sys.executable, "-c", BUILD, str(FILES / "fp8_fp32.onnx")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(typed_graphs.__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr + done.stdout
    names, size = done.stdout.splitlines()[0], done.stdout.split()[-1]
    assert names == "['h0', 'h1', 'h2', 'h3', 'h4', 'y'] ['FLOAT']"
    assert int(size) > 10_000
