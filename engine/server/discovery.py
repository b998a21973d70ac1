"""Find a Triton server for a repository: on the PATH, else in a container, else the one that pip installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import StepError
from engine.facts import Known, fact, places_on_path
from engine.runtimes import triton_images
from engine.server import container, image_tags, pip_server
from engine.server.installation import KIND_NAMES, Installation, Kind, Lacking, Launch, ServerSetup, options
from engine.server.repository_needs import Needs
from engine.text import versions

if TYPE_CHECKING:
    from engine.step import Hardware

KINDS: tuple[Kind, ...] = ("path", "container", "pip")
"""The kinds of servers, in the order in which `find` looks for them."""
PROGRAM = "tritonserver"
VERSION_FILE = "TRITON_VERSION"
"""The file in Triton's folder that holds Triton's version."""
_USUAL = Path("/opt/tritonserver")
_RELEASE, _VERSION = "NVIDIA_TRITON_SERVER_VERSION", "TRITON_SERVER_VERSION"
"""Environment variables in NVIDIA's images: the release of the image, "24.10", and Triton's version, "2.51.0"."""
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/lib")
NONE = "none"
_INSIDE = ("numpy", "onnxruntime", "tokenizers")
"""The packages that answer requests in the Python of the pip-installed server."""


def find(
    needs: Needs | None = None,
    *,
    only: Kind | None = None,
    order: Sequence[Kind] = KINDS,
    image: str | None = None,
    pull: bool = True,
) -> Installation:
    """Return the first server, in the order of kinds, that can serve models with the needs `needs`.

    `only` names the one kind of server to look for. `image` is the container image that the recipe names. With `pull`,
    an image that is not on this machine yet is fetched. Raises StepError where no server fits, with a reason for each
    kind of server.
    """
    needs = needs or Needs()
    finders: dict[Kind, Callable[[], Installation]] = {
        "path": lambda: find_on_path(needs),
        "container": lambda: container.find(needs, image, pull=pull),
        "pip": lambda: pip_server.find(needs),
    }
    passed: list[str] = []
    hints: list[str] = []
    for kind in (only,) if only else order:
        try:
            return replace(finders[kind](), passed=tuple(passed))
        except Lacking as reason:
            passed.append(f"{KIND_NAMES[kind]}: {reason}")
            if reason.hint:
                hints.append(reason.hint)
    what = f"no Triton server {KIND_NAMES[only]} can be used" if only else "there is no Triton server for the models"
    raise StepError(what, passed, hints[-1] if hints else "docs/serving.md says what each kind of server needs")


@dataclass(frozen=True)
class OnPath(Installation):
    """A server on the PATH: the file `program`, with its backends in the folder `backends`."""

    program: str = ""
    backends: Path = Path()

    def launch(self, setup: ServerSetup) -> Launch:
        """Return the command with all environment variables of the user: the server may need any of them."""
        command = [self.program, *options(setup, str(setup.repository), setup.ports, self.version)]
        command += [f"--backend-directory={self.backends}"]
        caches = self.backends.parent / "caches"
        if setup.needs.cached and caches.is_dir():
            command.append(f"--cache-directory={caches}")
        return Launch(command, dict(os.environ))


def find_on_path(needs: Needs) -> OnPath:
    """Return the server on the PATH. Raises Lacking where there is none, or it cannot serve the models of `needs`."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise Lacking(f"there is no {PROGRAM}")
    places = (home / "backends" for home in homes(program))
    backends = next((place for place in places if place.is_dir()), None)
    if backends is None:
        raise Lacking(f"there is no folder `backends` beside {program} or in {_USUAL}")
    missing = sorted(name for name in needs.backends if not (backends / name).is_dir())
    if missing:
        raise Lacking(f"{program} has no backend for {', '.join(missing)} in {backends}")
    tensorrt = _tensorrt()
    for engine in needs.engines:
        if tensorrt and not image_tags.loads(engine, tensorrt):
            built = f"{engine.model} was built by TensorRT {engine.tensorrt}"
            raise Lacking(f"{built}, and {program} has TensorRT {tensorrt}")
    return OnPath("path", _version(backends.parent), program, program=program, backends=backends)


def homes(program: str) -> tuple[Path, ...]:
    """Return the folders that may be Triton's own, for the program at a path."""
    return Path(program).resolve().parent.parent, _USUAL


def _version(home: Path) -> str:
    """Return Triton's version, from a file in Triton's folder or else from an environment variable; "" without both."""
    try:
        return (home / VERSION_FILE).read_text("utf-8").strip()
    except OSError:
        return os.environ.get(_VERSION, "")


def _tensorrt() -> str:
    """Return the latest TensorRT here, by the table of images or the name of its library; empty without one."""
    named = triton_images.read(os.environ.get(_RELEASE, ""))
    if named is not None and named.image is not None:
        return named.image.tensorrt
    names = [path.name for folder in _LIBRARIES for path in Path(folder).glob("libnvinfer.so.*.*.*")]
    return max((name.removeprefix("libnvinfer.so.") for name in names), key=versions.numbers, default="")


@fact("triton.server")  # not shown by `recipe doctor`: the fact runs docker, and few jobs depend on it
def triton_server(hardware: Hardware | None) -> Known:
    """Return the server's kind, version and, if pip installed it, packages; NONE where none can be started."""
    variables = ("PATH", *pip_server.VARIABLES)
    return Known(_server(gpu=hardware is not None), tuple(_places()), variables)


def _server(*, gpu: bool) -> str:
    backends = frozenset({"python"} if gpu else {"python", "onnxruntime"})
    try:
        installation = find(Needs(backends=backends, gpu=("model",) if gpu else ()), pull=False)
    except StepError:
        return NONE
    inside = []
    if isinstance(installation, pip_server.Packaged):
        names = (path.name for path in pip_server.packages(installation.environment).glob("*.dist-info"))
        installed = dict(name.removesuffix(".dist-info").split("-", 1) for name in names)
        inside = [f"{name} {installed[name]}" for name in _INSIDE if name in installed]
    return ", ".join((f"{installation.kind} {installation.version}".strip(), *inside))


def _places() -> Iterator[str]:
    """Yield the files and folders whose change may mean that a search would find another server."""
    yield from places_on_path(PROGRAM, *container.TOOLS)
    program = shutil.which(PROGRAM)
    if program is not None:
        for home in homes(program):
            yield from (str(home / "backends"), str(home / VERSION_FILE))
    environment = pip_server.place_of_environment()
    yield str(environment / pip_server.READY)
    yield str(environment / "lib" / f"python{pip_server.PYTHON}" / "site-packages")
