"""AOTInductor on a real GPU: a toy is compiled, and loaded in new processes with a limit of time.

    pytest -m gpu -rs tests/gpu/test_inductor.py

On an H100 with torch 2.11 a compiled model crashed at load, or hung. So each load runs alone in a new process, in each
way that differs, and a failed one says how it ended.
"""

import json
import subprocess
import sys

import pytest

from engine.machine import cuda
from engine.runtimes.inductor import compilation
from engine.runtimes.inductor.passport import AxisSizes

pytestmark = pytest.mark.gpu

SECONDS = 120
LOAD = """
import faulthandler, json, sys
faulthandler.enable()
faulthandler.dump_traceback_later({seconds}, exit=True)
import torch
path, way, device = sys.argv[1:]
if way == "package":
    model = torch._inductor.aoti_load_package(path, device_index=int(device)).loader
else:
    model = torch._C._aoti.AOTIModelPackageLoader(path, "model", way == "one-thread", 1, int(device))
x = torch.linspace(-1, 1, 3 * 64, device="cuda:0").reshape(3, 64)
[y] = model.run([x])
torch.cuda.synchronize()
print(json.dumps([y.float().sum().item(), torch.__version__, torch.version.cuda]))
"""
FORK = """
import os, sys
import torch
process = os.fork()
if process == 0:
    exec(compile({load!r}, "load", "exec"))
    os._exit(0)
_, status = os.waitpid(process, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """A compiled toy on the first GPU, and the sum of its answers."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip(f"torch {torch.__version__} cannot use the GPU")
    from engine.kit.onnx.onnx_files import Input

    class Toy(torch.nn.Module):
        input_names, output_names = ("x",), ("y",)
        input_specs = {"x": Input("x", "float32", ("batch", 64))}  # noqa: RUF012

        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64))

        def forward(self, x):
            return (self.layers(x).softmax(-1) * x,)

    folder = tmp_path_factory.mktemp("toy")
    module = Toy().eval()
    with torch.inference_mode():
        expected = module(torch.linspace(-1, 1, 3 * 64).reshape(3, 64))[0].sum().item()
    ranges = {"batch": AxisSizes(min=1, max=8)}
    file = folder / "model.pt2"
    compilation.compiled(module, file, sizes=ranges, precision="fp32", device="cuda:0", scratch=folder)
    return file, expected


@pytest.mark.parametrize("forked", [False, True], ids=["new", "forked"])
@pytest.mark.parametrize("device", [0, -1], ids=["index 0", "no index"])
@pytest.mark.parametrize("way", ["loader", "one-thread", "package"])
def test_a_compiled_toy_loads_and_answers_in_a_process_of_its_own(toy, way, device, forked):
    file, expected = toy
    load = LOAD.format(seconds=SECONDS)
    command = [sys.executable, "-c", FORK.format(load=load) if forked else load, str(file), way, str(device)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    how = f"exit code {done.returncode} on {cuda.devices()[0].name}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, how
    [answer, *_] = json.loads(done.stdout.splitlines()[-1])
    assert answer == pytest.approx(expected, abs=1e-3), how
