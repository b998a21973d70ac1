"""Which Triton server serves a repository: one on the PATH, else one in a container, else the pip-installed one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.errors import StepError
from engine.server import container, on_path, packaged
from engine.server.found import Found, Kind, Lacking
from engine.server.needs import Needs

KINDS: tuple[Kind, ...] = ("path", "container", "pip")
"""The order in which they are looked for."""
_NAMES = {"path": "on the PATH", "container": "in a container", "pip": "installed by pip"}


def find(needs: Needs | None = None, *, only: Kind | None = None, image: str | None = None, pull: bool = True) -> Found:
    """Return the first server that can serve what `needs` says.

    `only` is the one kind that is asked for, `image` the recipe's own word for a container's. `pull` lets an image be
    fetched that is not here yet. Raises StepError, with the reason of each kind, where none can serve.
    """
    wanted = needs or Needs()
    ways: dict[Kind, Callable[[], Found]] = {
        "path": lambda: on_path.find(wanted),
        "container": lambda: container.find(wanted, image, pull=pull),
        "pip": lambda: packaged.find(wanted),
    }
    passed: list[str] = []
    hints: list[str] = []
    for kind in (only,) if only else KINDS:
        try:
            return replace(ways[kind](), passed=tuple(passed))
        except Lacking as reason:
            passed.append(f"{_NAMES[kind]}: {reason}")
            hints += [reason.hint] if reason.hint else []
    what = f"no Triton server {_NAMES[only]} can be used" if only else "there is no Triton server for this here"
    raise StepError(what, passed, hints[-1] if hints else "docs/serving.md says what each kind of server needs")
