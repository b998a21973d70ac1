"""A machine with a T4 and TensorRT, as the whole program sees it: all fakes together in an environment of their own."""

import copy
import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from program import Program

from engine.runtimes.onnxruntime.providers import TENSORRT_LIBRARIES, TENSORRT_MAJOR

SUPPORT = Path(__file__).parent
_NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *clocks*) echo "{name}, {driver}, 1590, 1590, 5000, 40" ;;
  *query-gpu=driver_version*) echo {driver} ;;
  *) echo "{name}, {capability}, {driver}" ;;
esac
"""
DRIVER = "580.65.06"
"""The version of the driver of a fake machine, unless a test says another."""


class FakeT4(Program):
    """Runs `recipe` in a project folder on the fake machine, whose files lie in `place`.

    `tensorrt` is the version that the fake TensorRT says it has; None is the fake's own. What it can do is the same in
    each version: that of TensorRT 10. `first` are folders that come first on the import path. `arch` is the CPU
    architecture that the system reports, such as "aarch64" for a server with Arm CPUs; None is that of this machine.
    `cuda` tells whether a fake onnxruntime-gpu is installed, too, whose CUDA provider computes on the CPU.
    """

    gpu = json.loads((SUPPORT / "fake_tensorrt" / "gpu.json").read_text())

    def __init__(self, folder, place, *, tensorrt=None, first=(), arch=None, cuda=False):
        super().__init__(folder)
        self.first = tuple(first)
        place.mkdir(parents=True, exist_ok=True)
        is_plain = tensorrt is None and self.gpu == FakeT4.gpu
        fake = SUPPORT / "fake_tensorrt" if is_plain else _copied(place / "support", tensorrt, self.gpu)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
        [packages] = place.glob("venv/lib/python*/site-packages")
        providers = [SUPPORT / "fake_cuda"] if cuda else []
        paths = [*first, *providers, SUPPORT.parent.parent, fake, sysconfig.get_path("purelib")]
        lines = [*map(str, paths), "import fake_machine", *_other(arch), *(["import fake_provider"] if cuda else [])]
        (packages / "fake.pth").write_text("\n".join(lines) + "\n")
        if (tensorrt or TENSORRT_MAJOR).split(".")[0] == TENSORRT_MAJOR:  # the libraries that pip's TensorRT brings
            (packages / "tensorrt_libs").mkdir()
            for name in TENSORRT_LIBRARIES.names:
                (packages / "tensorrt_libs" / name).touch()
        (place / "bin").mkdir()
        write_nvidia_smi(place / "bin", gpu=self.gpu)
        self.python = place / "venv" / "bin" / "python"
        self.environment["PATH"] = f"{place / 'bin'}:{self.environment['PATH']}"
        self.environment.pop("PYTHONPATH", None)

    def at(self, folder):
        """Return the same machine in the folder of another project."""
        same = copy.copy(self)
        same.folder = folder
        return same

    def __call__(self, *words, expect=None):
        """Run a command line there, and hold its exit code against what is expected."""
        command = [self.python, "-m", "engine", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert expect in (None, done.returncode), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done


class FakeL4(FakeT4):
    """The same with an L4. Source of its figures: NVIDIA's data sheet of the L4, and its guide for Ada's tuning."""

    gpu = FakeT4.gpu | {
        "name": "NVIDIA L4", "sm": 89, "sm_count": 58, "memory": 24_152_899_584, "memory_bus_width": 192,
        "l2_bytes": 50_331_648, "shared_memory_per_sm": 102_400,
    }  # fmt: skip


def write_nvidia_smi(folder, *, gpu=FakeT4.gpu, driver=DRIVER):
    """Write a fake `nvidia-smi` into a folder, also in the place of one that another process may start now."""
    text = _NVIDIA_SMI.format(name=gpu["name"], capability=gpu["sm"] / 10, driver=driver)
    new = folder / "nvidia-smi.new"
    new.write_text(text)
    new.chmod(0o755)
    new.replace(folder / "nvidia-smi")


def _other(arch):
    """Return the lines of a .pth file that let Python believe in another architecture."""
    return [f"import platform; platform.machine = lambda: {arch!r}"] if arch else []


def _copied(place, version, gpu):
    """Copy the fake TensorRT for another GPU, or with another version; return the folder to import it from."""
    shutil.copytree(SUPPORT / "fake_tensorrt", place / "fake_tensorrt", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SUPPORT / "fake_gpu.py", place)
    (place / "fake_tensorrt" / "gpu.json").write_text(json.dumps(gpu))
    [information] = (place / "fake_tensorrt").glob("tensorrt-*.dist-info")
    old = information.name.removeprefix("tensorrt-").removesuffix(".dist-info")
    version = version or old
    for file in information.iterdir():
        file.write_text(file.read_text().replace(old, version))
    information.rename(information.with_name(f"tensorrt-{version}.dist-info"))
    return place / "fake_tensorrt"
