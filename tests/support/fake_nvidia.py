"""The CUDA driver and NVML of machines that a test describes: each answers from a transcript, and refuses all else.

A transcript (`nvidia_transcripts/NAME.json`) has the answers in the order in which the libraries number the GPUs. The
transcripts were written from NVIDIA's documents (MIG User Guide, NVML API Reference, CUDA Driver API), not recorded on
machines; `docs/first-gpu-run.md` asks for real ones.
"""

import importlib
import json
import uuid
from pathlib import Path
from types import SimpleNamespace

from engine.machine import cuda, local_gpus, nvml

PLACE = Path(__file__).with_name("nvidia_transcripts")
_NOT_SUPPORTED = 3
_CUDA_OK, _NO_DEVICE = 0, 100


class NVMLError(Exception):
    """The error that each refused question raises, as in `pynvml`."""


class FakeCuda:
    """Answers like libcuda, by writing into ctypes references."""

    def __init__(self, transcript):
        self.version, self.devices = transcript["supported"], transcript["devices"]

    def cuInit(self, _flags):  # noqa: N802 - NVIDIA's names
        return _CUDA_OK if self.devices else _NO_DEVICE

    def cuDriverGetVersion(self, version):  # noqa: N802
        version._obj.value = self.version
        return _CUDA_OK

    def cuDeviceGetCount(self, count):  # noqa: N802
        count._obj.value = len(self.devices)
        return _CUDA_OK

    def cuDeviceGet(self, handle, number):  # noqa: N802
        handle._obj.value = number
        return _CUDA_OK

    def cuDeviceGetName(self, name, _length, handle):  # noqa: N802
        name.value = self.devices[handle.value]["name"].encode()
        return _CUDA_OK

    def cuDeviceTotalMem_v2(self, memory, handle):  # noqa: N802
        memory._obj.value = self.devices[handle.value]["memory"]
        return _CUDA_OK

    def cuDeviceGetUuid_v2(self, value, handle):  # noqa: N802
        value._obj.raw = uuid.UUID(self.devices[handle.value]["uuid"].split("-", 1)[1]).bytes
        return _CUDA_OK

    def cuDeviceGetAttribute(self, value, which, handle):  # noqa: N802
        value._obj.value = self.devices[handle.value]["attributes"][str(which)]
        return _CUDA_OK


class FakeNvml:
    """Answers like the module `pynvml`: a handle is the UUID of a board or of a slice."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def __init__(self, transcript):
        self.driver, self.boards = transcript["driver"], transcript["boards"]
        self.questions = []
        self._slices = {uuid: board["uuid"] for board in self.boards for uuid in board.get("slices", ())}

    def nvmlInit(self):  # noqa: N802 - NVIDIA's names
        if self.driver is None:
            raise NVMLError("Driver Not Loaded")

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return self.driver

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, number):  # noqa: N802
        return self.boards[number]["uuid"]

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        if uuid not in self._slices and all(board["uuid"] != uuid for board in self.boards):
            raise NVMLError("Not Found")
        return uuid

    def nvmlDeviceIsMigDeviceHandle(self, handle):  # noqa: N802
        return int(handle in self._slices)

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle):  # noqa: N802
        return self._slices[handle]

    def __getattr__(self, name):
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def answer(handle, *arguments):
            self.questions.append((name, handle))
            board = next((board for board in self.boards if board["uuid"] == handle), None)
            if board is None or name not in board["answers"]:
                raise NVMLError("Not Supported")
            value = board["answers"][name]
            return value[str(arguments[0])] if isinstance(value, dict) else value

        return answer


def device(name, sm=75):
    """Return a GPU as CUDA describes it, of which no more is known than its name."""
    nothing = dict.fromkeys(cuda.CudaDevice.__dataclass_fields__, 0)
    return cuda.CudaDevice(**nothing | {"name": name, "sm": sm, "uuid": name})


def install(monkeypatch, name):
    """Let this process believe the transcript `name`; return its fake CUDA and NVML."""
    transcript = json.loads((PLACE / f"{name}.json").read_text())
    fakes = SimpleNamespace(cuda=FakeCuda(transcript["cuda"]), nvml=FakeNvml(transcript["nvml"]))
    monkeypatch.setattr(cuda, "library", lambda library: fakes.cuda if library == "libcuda.so.1" else None)
    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda name: fakes.nvml if name == "pynvml" else real(name))
    monkeypatch.setenv("PATH", "/nowhere")
    forget()
    return fakes


def forget():
    """Forget what this process knows about its GPUs."""
    for known in (cuda.devices, cuda.supported, local_gpus.gpus, nvml.library):
        getattr(known, "cache_clear", lambda: None)()
