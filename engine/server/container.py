"""Containers: Triton in an image of docker or podman whose TensorRT fits."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine import digest
from engine.machine import programs
from engine.server import image_tags
from engine.server.installation import Installation, Lacking, Launch, ServerSetup, options
from engine.server.joint_repository import targets
from engine.server.ports import USUAL, Ports
from engine.server.repository_needs import Needs

TOOLS = ("docker", "podman")
_GPUS: Mapping[str, Sequence[str]] = {"docker": ("--gpus", "all"), "podman": ("--device", "nvidia.com/gpu=all")}
_DERIVED = "recipe-triton"
_SHARED_MEMORY = "1g"
"""The size of the container's /dev/shm, through which the python backend passes tensors: docker's 64 MB are too few."""
_MODELS = "/models"
_ANSWER_SECONDS, PULL_SECONDS = 20, 7200
"""Seconds that docker may take for a query, and for pulling or building an image of several gigabytes."""
_DIGEST_LENGTH = 12
"""The number of characters that the tag of a derived image takes from a digest."""


@dataclass(frozen=True)
class InContainer(Installation):
    """A server in the container image `image`, run by `tool`: docker or podman."""

    tool: str = ""
    image: str = ""

    def launch(self, setup: ServerSetup) -> Launch:
        """Return the command that runs the server in a container, which can read the repository and nothing else."""
        outside, inside = setup.ports, Ports(*USUAL, address="0.0.0.0")  # noqa: S104 - inside the container alone
        published = [
            f"--publish={outside.written}:{here}:{there}"
            for here, there in zip((outside.http, outside.grpc, outside.metrics), USUAL, strict=True)
        ]
        name = setup.name.replace("_", "-")
        command = [
            self.tool, "run", "--rm", "--init", f"--name={name}", f"--shm-size={_SHARED_MEMORY}", *published,
            f"--volume={setup.repository}:{_MODELS}:ro",
            *(f"--volume={folder}:{folder}:ro" for folder in targets(setup.repository)),
            *(_GPUS[Path(self.tool).name] if setup.needs.gpu else ()),
            self.image, "tritonserver", *options(setup, _MODELS, inside, self.version),
        ]  # fmt: skip
        return Launch(command, dict(os.environ), afterwards=[[self.tool, "rm", "--force", name]])


def find(needs: Needs, named: str | None, *, pull: bool) -> InContainer:
    """Return a server in a container, from an image that serves the models of `needs`.

    If Triton's image lacks a Python package that the models need, an image is built that adds the package. `named` is
    the image that the recipe names. With `pull`, an image that is not on this machine is pulled or built. Raises
    Lacking where neither docker nor podman answers, or where no image can serve the models.
    """
    running = tool()
    chosen = image_tags.tag_for(needs.engines, named)
    base = chosen.address
    dockerfile = _dockerfile(base, needs)
    tag = chosen.tag if chosen.release else "other"
    image = f"{_DERIVED}:{tag}-{digest.of_bytes(dockerfile.encode())[:_DIGEST_LENGTH]}" if needs.requirements else base
    here = _has(running, image)
    if not here and pull:
        _fetch(running, base, image, dockerfile)
    unsure = image_tags.not_verified(needs.engines, chosen)
    why = f"{Path(running).name} runs {base}" + ("" if here or pull else ", once it is pulled")
    why = f"{why}; {unsure}" if unsure else why
    return InContainer("container", chosen.tag, why, tool=running, image=image)


def tool(names: Sequence[str] = TOOLS) -> str:
    """Return the path of docker or podman: the first of `names` that answers. Raises Lacking where none answers."""
    silent = []
    for name in names:
        program = shutil.which(name)
        if program is None:
            continue
        done = programs.run([program, "info"], seconds=_ANSWER_SECONDS)
        if done.returncode == 0:
            return program
        silent.append(f"{name} does not answer: {programs.last_line(done)}")
    raise Lacking("; ".join(silent) or f"neither {' nor '.join(names)} is installed")


def _dockerfile(image: str, needs: Needs) -> str:
    """Return the Dockerfile with the python models' packages. Raises Lacking for two versions of one package."""
    pinned: dict[str, str] = {}
    for line, model in needs.requirements.items():
        name = line.partition("==")[0].strip().lower()
        if pinned.setdefault(name, line) != line:
            raise Lacking(
                f"{needs.requirements[pinned[name]]} needs {pinned[name]}, and {model} needs {line}",
                "build both models with the same packages, or serve each on a server of its own",
            )
    words = " ".join(f"'{line}'" for line in sorted(pinned.values()))
    return f"FROM {image}\nRUN pip install --no-cache-dir {words}\n"


def _has(tool: str, image: str) -> bool:
    return programs.run([tool, "image", "inspect", image], seconds=_ANSWER_SECONDS).returncode == 0


def _fetch(tool: str, base: str, image: str, dockerfile: str) -> None:
    """Pull Triton's image `base`, and build the derived `image` from it. Raises Lacking where that fails."""
    print(f"{Path(tool).name} fetches {base}, several gigabytes; `--server pip` needs none", file=sys.stderr)
    if not _has(tool, base):
        done = programs.run([tool, "pull", base], seconds=PULL_SECONDS)
        if done.returncode:
            raise Lacking(f"{base} cannot be pulled: {programs.last_line(done)}")
    if image != base:
        done = programs.run([tool, "build", "--tag", image, "-"], seconds=PULL_SECONDS, text=dockerfile)
        if done.returncode:
            why = f"an image with the packages of the python models cannot be built: {programs.last_line(done)}"
            raise Lacking(why)
