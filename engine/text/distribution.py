"""The project's name on PyPI, and the commands that install its extras."""

NAME = "recipe-build"
"""The name of this project on PyPI.

The project's name on PyPI is not `recipe`, because on PyPI `recipe` is another project.
"""


def install(extra: str) -> str:
    """Return the command that installs an extra of this project, for the hints of errors."""
    return f"pip install '{NAME}[{extra}]'"
