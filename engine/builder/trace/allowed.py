"""The allow-list: what a job may read although no row of its key covers it, each with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache


class ReadingCode(StrEnum):
    """The code that reads something: of the step itself, of a library, or of this program."""

    STEP = "step"
    LIBRARY = "library"
    RECIPE = "recipe"


_WILDCARD = re.compile(r"[*?[]")
_ANYONE = (ReadingCode.STEP, ReadingCode.LIBRARY, ReadingCode.RECIPE)
_LIBRARIES = (ReadingCode.LIBRARY,)
_NOT_THE_STEP = (ReadingCode.LIBRARY, ReadingCode.RECIPE)


@dataclass(frozen=True)
class Allowed:
    """A line of the allow-list: what may be read, by whom and why."""

    what: tuple[str, ...]
    """Patterns: the kind of a read, a colon, and its name, in which `*` stands for any text."""
    readers: tuple[ReadingCode, ...]
    reason: str

    def covers(self, name: str) -> bool:
        """Say whether a read is allowed; `name` is its kind, a colon and its name."""
        # Compiling a pattern takes long, so it is compiled only if the text before its first wildcard fits.
        near = (pattern for pattern in self.what if name.startswith(_WILDCARD.split(pattern, 1)[0]))
        return any(fnmatchcase(name, pattern) for pattern in near)


ALLOWED: tuple[Allowed, ...] = (
    Allowed(
        ("package:python", "file:*/pyvenv.cfg", "file:/dev/null"),
        _ANYONE,
        "The interpreter and its standard library: one artifact serves every supported version of Python.",
    ),
    Allowed(
        ("package:recipe", "package:recipe-build", "folder:engine", "folder:engine/*"),
        _ANYONE,
        "Modules of this program that do no work of steps: they read recipes, run jobs and write reports.",
    ),
    Allowed(
        (
            *("package:annotated-types", "package:pydantic", "package:pydantic-core", "package:pyyaml"),
            *("package:typing-extensions", "package:typing-inspection", "package:networkx", "package:xxhash"),
            *("package:rich", "package:markdown-it-py", "package:mdurl", "package:pygments"),
        ),
        _ANYONE,
        "What this program itself is made of: it reads options, and options are rows.",
    ),
    Allowed(
        ("package:import path", "package:setuptools"),
        _ANYONE,
        "Folders of the import path, with .pth files and entry points: Python looks there for modules as it starts.",
    ),
    Allowed(
        ("package:metadata of *",),
        _NOT_THE_STEP,
        "Libraries compare the versions of other distributions with what they require, and refuse or go on.",
    ),
    Allowed(
        (
            *("package:aiohttp", "package:anyio", "package:brotli", "package:certifi", "package:grpcio", "package:h11"),
            *("package:httpcore2", "package:httpx2", "package:huggingface-hub", "package:idna", "package:truststore"),
            *("package:python-rapidjson", "package:urllib3", "package:fsspec", "package:hf-xet"),
        ),
        _ANYONE,
        "Clients of the network: what they fetch is a source, whose commit is a row.",
    ),
    Allowed(
        ("package:tqdm", "package:filelock", "package:packaging", "package:typer", "package:click"),
        _ANYONE,
        "Progress bars, locks, version numbers and command lines: they write no byte of an output.",
    ),
    Allowed(
        (
            *("package:jinja2", "package:markupsafe", "package:scipy", "package:pillow", "package:regex"),
            *("package:tokenizers", "package:sympy", "package:mpmath", "package:torchvision"),
        ),
        _LIBRARIES,
        "Imported by torch, transformers, timm and sympy for work that these jobs do not give them: templates, losses, "
        "slow tokenizers, symbols. A step that computes with one of them names it as a tool.",
    ),
    Allowed(
        ("package:cuda-bindings", "package:cuda-pathfinder", "program:/sbin/ldconfig", "file:/usr/local/cuda*"),
        _NOT_THE_STEP,
        "Probes for CUDA: the GPU, its driver and its runtime are facts of the steps that use them.",
    ),
    Allowed(
        ("program:*/python*", "program:openssl"),
        _LIBRARIES,
        "torch compiles: it tries what the CPU and the compiler can, and computes digests; both are facts.",
    ),
    Allowed(
        (
            *("machine:the number of CPUs", "file:/proc/cpuinfo", "file:/proc/meminfo", "file:/sys/fs/cgroup/*"),
            *("file:/sys/devices/*", "folder:/sys/*"),
        ),
        _NOT_THE_STEP,
        "Libraries choose the number of threads and the size of buffers. A result that depends on them has a fact.",
    ),
    Allowed(
        ("machine:the user", "machine:the user's groups", "machine:the umask", "machine:a limit of processes"),
        _NOT_THE_STEP,
        "Libraries name their caches by the user, give files their mode, and raise their limits.",
    ),
    Allowed(
        ("status:*",),
        (ReadingCode.RECIPE,),
        "This program asks which files a model has: the files that it reads then are rows.",
    ),
    Allowed(
        ("file:/proc/self/*", "folder:/proc/self/*", "file:/proc/mounts", "file:/proc/sys/kernel/*", "file:/dev/*"),
        _NOT_THE_STEP,
        "What the kernel says of itself and of this process, and devices such as /dev/null.",
    ),
    Allowed(
        (
            *("file:/usr/lib/*", "file:/lib/*", "file:/lib64/*", "file:/etc/*", "file:/usr/share/locale/*"),
            *("file:/usr/share/zoneinfo/*UTC", "file:/.dockerenv"),
        ),
        _NOT_THE_STEP,
        "The C library and other libraries of the system with their settings: wheels expect them to be compatible.",
    ),
    Allowed(
        ("file:~/.cache/Microsoft/DeveloperTools*", "folder:~/.cache/Microsoft/DeveloperTools*", "network:*:53"),
        _NOT_THE_STEP,
        "The telemetry of ONNX Runtime: its database, and the name of its server.",
    ),
    Allowed(
        ("file:*/recipe/openvino/*", "folder:*/recipe/openvino"),
        (ReadingCode.RECIPE,),
        "Compiled models in the user's cache folder: a blob computes what compiling anew would compute, bit for bit.",
    ),
)
"""What no row of a key covers, and what changes no byte of a result. The list has at most 20 lines."""


@lru_cache(maxsize=4096)
def reason(reader: ReadingCode, name: str) -> str | None:
    """Return why a read is allowed; None for a read that no line covers. `name` is its kind, a colon and its name."""
    lines = (line for line in ALLOWED if reader in line.readers and line.covers(name))
    return next((line.reason for line in lines), None)
