"""GitHub: errors as GitHub Actions shows them beside the lines of a change, and the summary of a job."""

# Source of the forms: GitHub, "Workflow commands for GitHub Actions".

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.text import redaction

if TYPE_CHECKING:
    from engine.errors import UserError


def of(error: UserError, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the workflow commands that show an error, one for each wrong recipe; empty outside of GitHub Actions."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return []
    inner = getattr(error, "errors", ())
    return [_command(each, environment) for each in inner or (error,)]


def summarize(title: str, tables: str, environment: Mapping[str, str] = os.environ) -> None:
    """Add tables of plain text to the summary of a job of GitHub Actions, where there is one; ignore errors."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path or environment.get("GITHUB_ACTIONS") != "true":
        return
    fence = "`" * 3
    block = f"{fence}text\n{tables.rstrip()}\n{fence}\n\n" if tables.strip() else ""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(redaction.redacted(f"### {title}\n\n{block}"))


def _command(error: UserError, environment: Mapping[str, str]) -> str:
    position = getattr(error, "position", None)
    if position is None:
        place = ""
    else:
        name = os.path.abspath(position.file)
        root = environment.get("GITHUB_WORKSPACE")
        if root and name.startswith(os.path.join(root, "")):
            name = os.path.relpath(name, root)
        place = f" file={_property(name)},line={position.line},col={position.column}"
    text = "\n".join([error.what, *error.facts, *([f"hint: {error.hint}"] if error.hint else [])])
    return f"::error{place}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
