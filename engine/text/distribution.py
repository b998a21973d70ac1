"""The project's name on PyPI, and the commands that install its extras."""

NAME = "recipe-build"
"""The name differs from the command `recipe` and the import `engine`: on PyPI, `recipe` is another project."""


def install(extra: str) -> str:
    """Return the command that installs an extra, for hints of errors."""
    return f"pip install '{NAME}[{extra}]'"
