"""Image building: the container image of a package, by the Dockerfile in the package."""

from __future__ import annotations

import shlex
from pathlib import Path

from engine.errors import StepError
from engine.machine import programs
from engine.server import container
from engine.server.installation import Lacking

BUILDERS = (*container.TOOLS, "buildah")
_SECONDS = 7200
_LINES = 5


def tool() -> str:
    """Return the path of the first of docker, podman and buildah that answers. Raises StepError where none does."""
    try:
        return container.tool(BUILDERS)
    except Lacking as reason:
        raise StepError(
            "no image can be built on this machine", [str(reason)],
            "where docker is, run in the package's folder: docker build --tag NAME .",
        ) from None  # fmt: skip


def build(folder: Path) -> str:
    """Build the image of the package in `folder`, and return the name of the image, which the manifests have.

    Raises StepError where the package has no Dockerfile, or where the image cannot be built.
    """
    import yaml

    manifest = folder / "compose.yaml"
    if not (folder / "Dockerfile").is_file() or not manifest.is_file():
        raise StepError("the package has no Dockerfile", [str(folder)], f"{folder / 'README.md'} says why")
    [service] = yaml.safe_load(manifest.read_text("utf-8"))["services"].values()
    name = str(service["image"])
    command = [tool(), "build", "--tag", name, str(folder)]
    done = programs.run(command, seconds=_SECONDS)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-_LINES:]
        raise StepError(f"{Path(command[0]).name} cannot build the image {name}", lines, f"run {shlex.join(command)}")
    return name
