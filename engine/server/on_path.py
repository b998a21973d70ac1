"""Triton on the PATH: the program `tritonserver`, with the backends in a folder beside the program."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes import triton_images, versions
from engine.server import image_tags
from engine.server.installation import Installation, Lacking, Launch, Place, options
from engine.server.needs import Needs

PROGRAM = "tritonserver"
VERSION_FILE = "TRITON_VERSION"
"""The file in Triton's folder that holds Triton's version."""
_USUAL = Path("/opt/tritonserver")
_RELEASE, _VERSION = "NVIDIA_TRITON_SERVER_VERSION", "TRITON_SERVER_VERSION"
"""Environment variables in NVIDIA's images: the release of the image, "24.10", and Triton's version, "2.51.0"."""
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib", "/usr/lib")


@dataclass(frozen=True)
class OnPath(Installation):
    """A server on the PATH: the file `program`, with its backends in the folder `backends`."""

    program: str = ""
    backends: Path = Path()

    def launch(self, place: Place) -> Launch:
        """Return the command with all environment variables of the user: the server may need any of them."""
        command = [self.program, *options(place, str(place.repository), place.ports)]
        command += [f"--backend-directory={self.backends}"]
        caches = self.backends.parent / "caches"
        if place.needs.cached and caches.is_dir():
            command.append(f"--cache-directory={caches}")
        return Launch(command, dict(os.environ))


def find(needs: Needs) -> OnPath:
    """Return the server on the PATH.

    Raises Lacking where no server is on the PATH, or where the server cannot serve the models of `needs`.
    """
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
            raise Lacking(
                f"{engine.model} was built by TensorRT {engine.tensorrt}, and {program} has TensorRT {tensorrt}"
            )
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
    """Return the version of TensorRT where the server is installed, the latest of several; empty where none is found.

    In an image of NVIDIA that recipe knows, the version comes from recipe's table of images; elsewhere from the file
    name of TensorRT's library.
    """
    named = triton_images.read(os.environ.get(_RELEASE, ""))
    if named is not None and named.image is not None:
        return named.image.tensorrt
    names = [path.name for folder in _LIBRARIES for path in Path(folder).glob("libnvinfer.so.*.*.*")]
    return max((name.removeprefix("libnvinfer.so.") for name in names), key=versions.numbers, default="")
