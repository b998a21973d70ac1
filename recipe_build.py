"""Start the program `recipe`, unless another `engine` would be imported in the place of this package."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_NAME = "engine"


def main() -> NoReturn:
    """Run the program. A folder on the import path may hold a user's own `engine.py`: that is one clear error."""
    import importlib.util

    if __name__ == "__main__" and sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # `python -m recipe_build` puts the working directory there
    spec = importlib.util.find_spec(_NAME)
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not any(os.path.isfile(os.path.join(place, "cli.py")) for place in places):
        _refuse(spec.origin if spec and spec.origin else next(iter(places), _NAME))
    from engine.cli import main as run

    run()


def _refuse(other: str) -> NoReturn:
    """Say which file or folder Python finds in the place of this package, and end."""
    sys.stderr.write(
        f"error: {os.path.relpath(other)} hides the package `{_NAME}` of recipe\n"
        f"  Python finds it first, by PYTHONPATH: {os.environ.get('PYTHONPATH', '')}\n"
        "hint: rename it, or take its folder out of PYTHONPATH\n"
    )
    sys.exit(2)


if __name__ == "__main__":
    main()
