"""Find a Triton server for a repository: on the PATH, else in a container, else the one that pip installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.errors import StepError
from engine.server import container, on_path, packaged
from engine.server.installation import KIND_NAMES, Installation, Kind, Lacking
from engine.server.needs import Needs

KINDS: tuple[Kind, ...] = ("path", "container", "pip")
"""The kinds of servers, in the order in which `find` looks for them."""


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
    ways: dict[Kind, Callable[[], Installation]] = {
        "path": lambda: on_path.find(needs),
        "container": lambda: container.find(needs, image, pull=pull),
        "pip": lambda: packaged.find(needs),
    }
    passed: list[str] = []
    hints: list[str] = []
    for kind in (only,) if only else order:
        try:
            return replace(ways[kind](), passed=tuple(passed))
        except Lacking as reason:
            passed.append(f"{KIND_NAMES[kind]}: {reason}")
            if reason.hint:
                hints.append(reason.hint)
    what = f"no Triton server {KIND_NAMES[only]} can be used" if only else "there is no Triton server for the models"
    raise StepError(what, passed, hints[-1] if hints else "docs/serving.md says what each kind of server needs")
