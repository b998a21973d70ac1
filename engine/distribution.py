"""The name by which pip knows this project, and the words that install what one of its extras brings."""

NAME = "recipe-build"
"""`recipe` is another project's on PyPI. The command is `recipe`, the import `engine`."""


def install(extra: str) -> str:
    """Return the command that installs an extra, as hints say it."""
    return f"pip install '{NAME}[{extra}]'"
