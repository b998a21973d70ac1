"""The image of a package: built by docker, podman or buildah, pushed to a registry, and named by its digest."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from engine import digest
from engine.errors import StepError
from engine.kit.triton.notices import BILL
from engine.machine import programs
from engine.server import container, manifests
from engine.server.installation import Lacking

BUILDERS = (*container.TOOLS, "buildah")
_TAG_LENGTH = 12
_LINES = 5
_DIGEST = re.compile(r"(?:^|digest: )(sha256:[0-9a-f]{64})\b")
"""As podman and buildah write it into a file, and as docker ends a push: TAG: digest: DIGEST size: BYTES."""


def builder() -> str:
    """Return the path of the first of docker, podman and buildah that answers. Raises StepError where none does."""
    try:
        return container.tool(BUILDERS)
    except Lacking as reason:
        raise StepError(
            "no image can be built on this machine", [str(reason)],
            f"where docker is, run in the package's folder: docker build --tag NAME:{manifests.LOCAL_TAG} .",
        ) from None  # fmt: skip


def build(folder: Path) -> str:
    """Build the image of a package; return its name. Raises StepError without a Dockerfile, and where that fails."""
    import yaml

    compose = folder / "compose.yaml"
    if not (folder / "Dockerfile").is_file() or not compose.is_file():
        raise StepError("the package has no Dockerfile", [str(folder)], f"{folder / 'README.md'} says why")
    name = str(yaml.safe_load(compose.read_text("utf-8"))["services"]["triton"]["image"])
    _run([builder(), "build", "--tag", name, str(folder)], f"cannot build the image {name}")
    return name


def push(folder: Path, name: str, registry: str) -> str:
    """Push the image `name` of a package to a registry; return its address there, with the digest.

    `registry` is HOST[:PORT][/FOLDER]. The tag tells packages apart, so no push takes the tag of another. Raises
    StepError where the push fails, or where the program does not tell the digest that the registry gave.
    """
    program = builder()
    address = f"{registry}/{name.partition(':')[0]}"
    tagged = f"{address}:{digest.of_file(folder / BILL)[:_TAG_LENGTH]}"
    _run([program, "tag", name, tagged], f"cannot tag the image {name}")
    failed = f"cannot push {tagged}"
    # A program with the name docker may be podman, which tells the digest in a file alone.
    if Path(program).name == "docker" and "podman" not in _run([program, "--version"], failed):
        output = _run([program, "push", tagged], failed)
    else:
        with tempfile.NamedTemporaryFile() as file:
            _run([program, "push", "--digestfile", file.name, tagged], failed)
            output = Path(file.name).read_text("utf-8")
    match = _DIGEST.search(output)
    if match is None:
        lines = output.splitlines()[-_LINES:]
        raise StepError(f"{Path(program).name} does not tell the digest of {tagged}", lines, "look it up there")
    return f"{address}@{match[1]}"


def write_manifests(folder: Path, out: Path, address: str) -> None:
    """Write a package's manifests into the folder `out`, with the address of the pushed image."""
    out.mkdir(parents=True, exist_ok=True)
    for file in manifests.FILES:
        (out / file).write_text(manifests.pushed((folder / file).read_text("utf-8"), address), "utf-8")


def _run(command: Sequence[str], failed: str) -> str:
    """Return the standard output of a program. Raises StepError with its last lines where it fails."""
    done = programs.run(command, seconds=container.PULL_SECONDS)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}").splitlines()[-_LINES:]
        raise StepError(f"{Path(command[0]).name} {failed}", lines, f"run {shlex.join(command)}")
    return done.stdout
