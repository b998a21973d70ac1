"""Further options: what a user gives to `tritonserver` beside the options that recipe sets."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import UsageError

_OURS = {
    "--model-repository": "name recipes: recipe serves their packages",
    "--model-store": "name recipes: recipe serves their packages",
    "--http-address": "use --address ADDRESS of recipe",
    "--grpc-address": "use --address ADDRESS of recipe",
    "--metrics-address": "use --address ADDRESS of recipe",
    "--http-port": "use --http-port PORT of recipe, before `--`",
    "--grpc-port": "use --grpc-port PORT of recipe, before `--`",
    "--metrics-port": "use --metrics-port PORT of recipe, before `--`",
    "--allow-http": "recipe watches the server over HTTP",
    "--backend-directory": "leave it out: recipe finds the backends",
    "--id": "leave it out: recipe tells its servers apart by it",
    "--log-file": "use --log FILE of recipe, before `--`",
    "--exit-on-error": "leave it out: recipe reports which model does not load",
}
"""Options that recipe itself needs, with what to do instead."""


def check(words: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a command line behind `--`. Raises UsageError for an option that recipe itself sets."""
    for word in words:
        name = word.partition("=")[0]
        if name in _OURS:
            raise UsageError(f"recipe sets {name} of tritonserver itself", [f"behind `--`: {word}"], _OURS[name])
    if words and not words[0].startswith("--"):
        raise UsageError(
            f"behind `--` stand options of tritonserver, and {words[0]!r} is none",
            hint="recipe serve RECIPE -- --log-verbose=1",
        )
    return tuple(words)
