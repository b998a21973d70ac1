"""The fact `triton.server`: the Triton that bench measures here, and the packages that its latencies depend on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine import server as serving
from engine.errors import StepError
from engine.facts import Known, fact, places_on_path
from engine.server import container, on_path, packaged

if TYPE_CHECKING:
    from engine.step import Hardware

NONE = "none"
_INSIDE = ("numpy", "onnxruntime", "tokenizers")
"""The packages that answer requests in the Python of the pip-installed server."""


@fact("triton.server")  # not shown by `recipe doctor`: the fact runs docker, and few jobs depend on it
def triton_server(hardware: Hardware | None) -> Known:
    """Return the kind and version of the Triton server for a model on `hardware`; NONE where no server can be started.

    For the pip-installed server, whose models run in Python, the value also names the versions of the packages that
    answer requests.
    """
    variables = ("PATH", *packaged.VARIABLES)
    return Known(_server(gpu=hardware is not None), tuple(_places()), variables)


def _server(*, gpu: bool) -> str:
    backends = frozenset({"python"} if gpu else {"python", "onnxruntime"})
    try:
        installation = serving.find(serving.Needs(backends=backends, gpu=("model",) if gpu else ()), pull=False)
    except StepError:
        return NONE
    inside = _versions_inside(installation) if isinstance(installation, packaged.Packaged) else []
    return ", ".join((f"{installation.kind} {installation.version}".strip(), *inside))


def _places() -> Iterator[str]:
    """Yield the files and folders whose change may mean that a search would find another server."""
    yield from places_on_path(on_path.PROGRAM, *container.TOOLS)
    program = shutil.which(on_path.PROGRAM)
    if program is not None:
        for home in on_path.homes(program):
            yield from (str(home / "backends"), str(home / on_path.VERSION_FILE))
    environment = packaged.place_of_environment()
    yield str(environment / packaged.READY)
    yield str(environment / "lib" / f"python{packaged.PYTHON}" / "site-packages")


def _versions_inside(installation: packaged.Packaged) -> list[str]:
    names = (path.name for path in packaged.packages(installation.environment).glob("*.dist-info"))
    versions = dict(name.removesuffix(".dist-info").split("-", 1) for name in names)
    return [f"{name} {versions[name]}" for name in _INSIDE if name in versions]
