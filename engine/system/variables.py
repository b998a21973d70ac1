"""Environment variables of the program, and a note about a variable whose name is likely to be misspelt."""

from __future__ import annotations

from collections.abc import Iterable

_PREFIX = "RECIPE_"
_WRITES = "RECIPE_WRITE_"
"""The prefix of variables with credentials for writing, of which there are many."""
VARIABLES = frozenset(
    {
        "RECIPE_ALLOW_PATHS",
        "RECIPE_CACHE",
        "RECIPE_JOB_GPU",
        "RECIPE_JOB_KEY",
        "RECIPE_NODE_STORE",
        "RECIPE_PUSH",
        "RECIPE_REMOTE",
        "RECIPE_REMOTE_TOKEN",
        "RECIPE_SAMPLE_SEED",
        "RECIPE_SIGNING_KEY",
        "RECIPE_TRITON_VENV",
        "RECIPE_TRUST",
        "RECIPE_TRUST_CACHE",
    }
)
"""All variables that the program or its tests read, except those that begin with RECIPE_WRITE_."""
_ALIKE = 0.85
"""The least similarity, from 0 to 1, of a misspelt name. Other programs may have variables that begin with RECIPE_."""


def notes(names: Iterable[str]) -> list[str]:
    """Return a note for each of the variables `names` that looks like a misspelt variable of this program."""
    unknown = [name for name in names if name.startswith(_PREFIX) and name not in VARIABLES]
    unknown = [name for name in unknown if not name.startswith(_WRITES)]
    if not unknown:
        return []
    from engine.text import suggestions

    near = ((name, suggestions.nearest(name, VARIABLES, least=_ALIKE)) for name in sorted(unknown))
    return [f"the variable {name} is not read; did you mean {match[0]}?" for name, match in near if match]
