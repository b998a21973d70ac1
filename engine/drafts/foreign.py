"""Foreign settings: what a command or a file of another tool says, as fields of a recipe, and what stays unmapped."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.drafts.draft import Draft, Unmapped
from engine.errors import UsageError

_ENDS = (">", ">>", "2>&1", "|", "&&", ";", "&")
"""Words of the shell at which the command ends."""


@dataclass
class Foreign:
    """The settings of another tool: fields of a recipe by dotted path, each with the setting that it comes from."""

    tool: str
    model: str | None = None
    """The model that the tool names, as `recipe new` takes it; None where it names none."""
    device: str | None = None
    """`cpu`, if the tool builds for CPUs; None where it does not say for which device."""
    fields: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    unmapped: list[Unmapped] = field(default_factory=list)

    def put(self, path: str, value: Any, origin: str) -> None:
        """Set the field at a dotted path; `origin` is the setting of the other tool."""
        self.fields[path] = value
        self.origins[path] = origin

    def leave(self, setting: str, reason: str | None) -> None:
        """Note a setting that no field stands for; `reason` is None where nothing more is known."""
        self.unmapped.append(Unmapped(setting, reason or "no field of a recipe stands for it"))

    def add_to(self, draft: Draft) -> None:
        """Write the settings into the draft of the model's recipe, over what the draft has guessed."""
        if "profiles" in self.fields:
            _drop_guessed_sizes(draft)
        for path, value in self.fields.items():
            draft.put(path, value, f"{self.tool}: {self.origins[path]}")
        draft.unmapped += self.unmapped


def _drop_guessed_sizes(draft: Draft) -> None:
    """Remove the shapes and the random samples that were made for guessed profiles; a build makes its own."""
    draft.fields.get("bench", {}).pop("shapes", None)
    draft.comments.pop("bench.shapes", None)
    if draft.samples is not None and draft.samples.name.endswith(".npz"):
        draft.samples = None
        draft.fields.pop("validate", None)
        draft.comments.pop("validate", None)


def words(text: str, tool: str) -> list[str]:
    """Return the words of a command behind the name of its program `tool`, up to the end of the command.

    A backslash is part of a path of Windows, unless it ends a line. Raises UsageError for text without the program.
    """
    lexer = shlex.shlex(text.replace("\\\r\n", " ").replace("\\\n", " "), posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        every = list(lexer)
    except ValueError as error:
        raise UsageError(f"the command of {tool} cannot be read: {error}", hint="quote it as a whole") from None
    end = next((number for number, word in enumerate(every) if word in _ENDS), len(every))
    files = [word.lstrip("!").replace("\\", "/").rpartition("/")[2] for word in every[:end]]
    begin = next((number for number, file in enumerate(files) if file.removesuffix(".exe").lower() == tool), None)
    if begin is not None:
        return every[begin + 1 : end]
    if every[:1] and every[0].startswith("-"):
        return every[:end]
    raise UsageError(
        f"this is no command of {tool}", [f"given: {text[:100]}"], f"it begins with {tool}, or with an option"
    )


def options(words: list[str], valued: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and text of each option, "" for other words; `valued`: options with a value -> long names."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            yield "", word, word
        elif not equals and name in valued:
            value = next(rest, "")
            yield valued[name], value, f"{name} {value}"
        else:
            yield valued.get(name, name), value, word
