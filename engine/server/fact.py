"""The server fact: which Triton is measured here, and what of its environment a latency depends on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine import server as serving
from engine.errors import StepError
from engine.known import Known, fact
from engine.server import container, on_path, packaged

if TYPE_CHECKING:
    from engine.step import Hardware

NONE = "none"
_INSIDE = ("numpy", "onnxruntime", "tokenizers")
"""What answers in the pip-installed server's own Python."""


@fact("triton.server")  # it describes no machine: asking takes a look at docker, and few jobs depend on it
def triton_server(hardware: Hardware | None) -> Known:
    """Return the kind and version of the server that would be started for a model on a CPU or a GPU; NONE for none.

    Of the pip-installed one, whose models are answered in Python, also the packages that do so.
    """
    variables = ("PATH", *packaged.VARIABLES)
    return Known(_server(gpu=hardware is not None), tuple(_places()), variables)


def _server(*, gpu: bool) -> str:
    backends = frozenset({"python"} if gpu else {"python", "onnxruntime"})
    try:
        found = serving.find(serving.Needs(backends=backends, gpu=("model",) if gpu else ()), pull=False)
    except StepError:
        return NONE
    inside = _inside(found) if isinstance(found, packaged.Packaged) else []
    return ", ".join((f"{found.kind} {found.version}".strip(), *inside))


def _places() -> Iterator[str]:
    """Yield the places that tell whether another server would be found by now."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield from (os.path.join(folder, name) for name in (on_path.PROGRAM, *container.TOOLS))
    program = shutil.which(on_path.PROGRAM)
    yield from [os.path.realpath(program)] if program else []
    environment = packaged.place_of_environment()
    yield str(environment / packaged.READY)
    yield str(environment / "lib" / f"python{packaged.PYTHON}" / "site-packages")


def _inside(found: packaged.Packaged) -> list[str]:
    names = [path.name for path in packaged.packages(found.environment).glob("*.dist-info")]
    parts = (name.removesuffix(".dist-info").partition("-") for name in sorted(names))
    return [f"{name} {version}" for name, _, version in parts if name in _INSIDE]
